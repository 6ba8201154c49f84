"""Speculation on compared with speculation off, where neither gives its rows: servers and generate functions.

Read `comparison.py`, `completion.py`, `greedy.py` and `sampling.py` (the two claims), `audit.py`; the two transports
are `endpoint.py` with `openai_client.py`, and `functions.py`.
"""
