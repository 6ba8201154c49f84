"""SMT (z3): the rules of `refengine.exact`, executed on symbolic rows.

Read `real.py` and `chance.py` (symbolic numbers and decisions), `judge.py` (what z3 is asked), `test_rules.py`; then
`defects.py`, `outside.py` and `smallest.py` (what each class of defects needs to show).
"""
