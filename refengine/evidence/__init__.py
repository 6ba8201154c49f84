"""Evidence against the conditional null: e-processes that bet on listed defects and on what they learn.

Read `rows.py` and `token_kinds.py` (what is bet on), `fixed_bets.py`, `learned_bets.py`, `one_coin.py`,
`defect_laws.py`, `proposer_laws.py` (the bets), `e_process*.py` (what they add up to); then `fit.py`, `distance.py`,
`power.py`.
"""
