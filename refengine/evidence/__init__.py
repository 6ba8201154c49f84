"""Evidence against the conditional null: e-processes that bet on listed defects and on what they learn.

Read `rows.py`, `token_kinds.py` and `naming.py`; the bets in `fixed_bets.py`, `defect_laws.py`, `proposer_laws.py`,
`one_coin.py`, `learned_bets.py`; the wealth in `e_process*.py`; then `alpha.py`, `fit.py`, `distance.py`, `power.py`.
"""
