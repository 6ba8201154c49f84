"""Large samples, in a fixed order and under one budget: `make stat`, or `pytest -m stat`.

Read `budget.py` (one false-alarm rate for the whole suite), `counts.py`, then the tests: `test_rules.py` (the engine),
`test_drafters.py` and `test_loop.py` (the decoder), `test_loop_sees.py` (planted defects, which must show).
"""
