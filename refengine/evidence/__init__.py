"""Evidence against the conditional null: e-processes that bet on listed defects and on what they learn.

Read `rows.py` and `naming.py`; what is bet on in `bets/`; the wealth in `e_process*.py`; then `alpha.py`, `fit.py`,
`distance.py`, `power.py`, `ties.py`.
"""
