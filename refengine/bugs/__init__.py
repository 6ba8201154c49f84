"""Planted defects, the negative controls: published bugs as edits of our own source, and the checks that see them.

Read `catalogue/` (the bugs), `laws.py`, `shared_coins.py`, `checks/`, `kill_matrix.py`; `process/` runs them in
processes of their own; `mutation/` makes every small mistake in the core.
"""
