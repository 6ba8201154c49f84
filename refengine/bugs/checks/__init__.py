"""The general checks: each states a claim about running source, and returns the smallest case in which it is false.

A check is a function of no arguments that returns None or a Violation (`violation.py`), or a quick file of tests;
`names.py` lists both. Checks know nothing of the catalogue. They run in a process whose source was edited, so those
with a witness carry their own arithmetic (`oracle.py`) and their own inputs (`tables.py`, `batches.py`, `subjects.py`,
`settings.py`). Read `rounds.py` and `loops.py` (the exact text), `twins.py`, `numerics.py` and `large.py` (the batched
text), `decoding.py` and `network.py` (the decoder).
"""

from refengine.bugs.checks.names import CHECKS

__all__ = ["CHECKS"]
