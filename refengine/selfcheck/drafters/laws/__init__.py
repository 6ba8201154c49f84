"""Exact laws of the decoder's loop on its fixtures.

`memo.py` and `remembering.py` (no pass is computed twice), `exact_law.py` (the law of a loop), `cells.py` (a drafter
under a rule and a policy, with a planted bug or none).
"""
