"""The general checks: each states a claim about running source, and returns the smallest case in which it is false.

A check is a function of no arguments that returns None or a Violation, or a quick file of tests (`names.py`). Checks
know nothing of the catalogue. They run in a process whose source was edited, so those with a witness carry their own
arithmetic (`oracle`) and their own inputs (`tables`, `batches`).
"""

from refengine.bugs.checks.names import CHECKS

__all__ = ["CHECKS"]
