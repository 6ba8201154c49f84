"""Every drafter of the decoder on its fixture: exact laws, contracts, damage, planted state bugs.

Read `fixtures.py`, `cells.py`, `exact_law.py`, `checks.py`, `contract.py`, `damage.py`, `planted_bugs.py`,
`battery.py`, `table.py`, `committed_cells.py`; `published_loops.py` holds loops that documents print.
"""
