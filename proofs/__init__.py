"""What is proved of the rules, and what ties it to the programs that run. README.md is the index by paper.

`rocq/` (Coq), `gate/` (what `make prove` lets through), `translate/` (the exact text as Coq programs), `batched/` (the
engine's text on z3 terms), `smt/`, `symbolic/`, `protocol/`, `claims/`. `bridge.py` with `instances.py` asks Coq for
laws, `statements.py` and `hypotheses.py` read and remove hypotheses, `transport.py` bounds acceptance.
"""
