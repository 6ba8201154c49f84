"""Other people's code held to its promise: a function, a program, a library's generate, a server, a record of rounds.

Read `common.py`, `magnitude.py`; `sandbox/` (child processes), `inputs/`, `interception/` (random calls enumerated),
`kernel/` (functions of rows), `paired/` (speculation on beside off), `trace.py` (records), `adapters/` (known
libraries).
"""
