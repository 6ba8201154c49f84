"""What an e-process bets on: alternatives to the null, listed and learned.

`token_kinds.py`, `fixed_bets.py`, `defect_laws.py` with `proposer_laws.py` (the laws of known defects), `one_coin.py`
(coins that are shared), `learned_bets.py` (what the calls themselves show).
"""
