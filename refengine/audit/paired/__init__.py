"""Speculation on beside speculation off, where the rows of neither are given: servers and generate functions.

Read `request.py`, `completion.py`, `greedy.py` and `sampling.py` (the two claims), `audit.py`; the two transports are
`endpoint.py` with `openai_client.py`, and `functions.py`.
"""
