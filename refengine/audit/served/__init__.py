"""What a user is sent: parameters, metadata, seeds and state, with speculation on beside off.

Read `ask.py` (a request and its answer), `transports/`; `grammar.py`, `faults.py`, `noise.py`, `belief.py` (what shows,
and what it proves); `bench.py`, `claims/`, `sides.py` (what both sides take), `plan.py` (the claims that can be looked
at), `suite.py` (which is looked at next), `reduce.py`, `locate.py`, `diagnosis.py`, `audit.py`, `endpoint.py`.
Of one server beside a law that is computed: `known/`.
"""
