"""Every drafter of the decoder on its fixture: exact laws, contracts, damage, planted state bugs.

Read `row.py`, `rows/` (one file a drafter), `planted_bugs.py`, `table.py`; `laws/`; `contract.py`, `damage.py`,
`peers.py`, `bits.py`, `company.py`, `ties.py`, `checks.py`; `battery.py` makes findings of all, `committed_cells.py`
and `committed_bits.py` keep the long ones under digests of `computed_from.py`; `published_loops.py`: loops that
documents print.
"""
