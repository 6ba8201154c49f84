"""What a user is sent: parameters, metadata, seeds and state, with speculation on beside off.

Read `ask.py` (a request and its answer), `http.py` and `functions.py` (the two transports), `journal.py`; `options.py`,
`cells.py`, `sampled.py` with `scores.py`, `schedules.py` (the claims), `faults.py`, `noise.py`, `ties.py`, `belief.py`
(what shows, and what it proves); `bench.py`, `suite.py` (who is looked at next), `reduce.py`, `locate.py`, `audit.py`.
Of one server beside a law that is computed: `known_law.py`, `known.py`.
"""
