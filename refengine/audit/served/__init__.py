"""What a user is sent: parameters, metadata, seeds and state, with speculation on beside off.

Read `ask.py` (a request and its answer), `http.py` and `functions.py` (the two transports), `journal.py`; `options.py`,
`cells.py`, `sampled.py`, `schedules.py` (the claims), `faults.py`, `belief.py` (what shows, and what it proves);
`bench.py`, `suite.py` (who is looked at next), `reduce.py`, `audit.py`.
"""
