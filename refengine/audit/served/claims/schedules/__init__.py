"""Claims in which a side is held to itself: seeds, independence, streams, and state that requests leave behind.

Read `claims.py`, then `requests.py` (what is asked), `prompts.py` (of which prompts), `faults.py` (what of the answers
is a fault), `coins_in_company.py` (coins that a batch shares) and `coins_by_arm.py` (coins that a neighbour without a
seed or a server that wakes changes).
"""
