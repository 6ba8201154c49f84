"""Every drafter of the decoder on its fixture: exact laws, contracts, damage, planted state bugs.

Read `row.py`, `rows/` (one file a drafter), `planted_bugs.py`, `table.py`; `memo.py`, `remembering.py`, `exact_law.py`,
`cells.py`; `contract.py`, `damage.py`, `peers.py`, `checks.py`; `battery.py` makes findings of all,
`committed_cells.py` keeps the long ones; `published_loops.py`: loops that documents print.
"""
