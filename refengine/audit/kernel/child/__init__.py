"""What runs in the child process with the audited function.

`signatures.py` (how it is called), `program.py` (a program in its place), `calls.py` (one call and what came back),
`enumerate.py` (every outcome of its random calls), `worker.py` (the loop that serves the parent).
"""
