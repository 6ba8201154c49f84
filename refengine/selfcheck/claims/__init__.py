"""Claims, their theorems and tests, and what ties the theorems to the code that runs.

Read `claims.py`, `chains.py`, `coq_bridge.py`, `checks.py`, `mutants_of_rules.py`, `mutants_of_tests.py`,
`coq_text.py`, `hypotheses.py`, `finding.py`.
"""
