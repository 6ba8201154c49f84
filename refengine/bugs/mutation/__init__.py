"""Every small mistake in the core and what sees it.

`mutants.py` makes them, `run.py` runs them, `record.py` keeps what came of them.
"""
