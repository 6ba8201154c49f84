"""The inputs of a kernel audit: they decide more than tests do.

Read `case.py`, `first_calls.py` (what every audit begins with), `hostile.py` (all of them), `enumerable.py` (the small
ones whose whole law is enumerated).
"""
