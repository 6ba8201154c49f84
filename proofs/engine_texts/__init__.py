"""What no text of the engine may do, since z3 would not see it: read from syntax trees, before anything runs.

Read `defining.py` (what none may do while it is imported: `gate/first.py` asks), `reached.py` (which texts the rules
come to), `counting.py` (what none may reckon with), `telling.py` (what none may ask).
`proofs/test_engine_texts.py` holds every text to it; `proofs/batched` then runs the texts.
"""
