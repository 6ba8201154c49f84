"""refengine: the referee of speculative decoding.

Begin with `exact/` (the definition of every rule), then `engine/` (the same rules, batched) and `evidence/`
(statistics). `decoder/` is the reference decoder, `audit/` judges other people's code, `bugs/` has planted defects,
`selfcheck/` judges this package; all of them make the findings of `report/`. `jobs/` runs what takes long,
`source_edits/` runs the package with a mistake in it. `cli/` calls `commands/`; `pytest_plugin.py` and `strategies.py`
are for other people's tests. `errors.py`, `files.py` and `source_tree.py` serve all. CONTRIBUTING.md says which room
may import which.
"""

__version__ = "0.1.0"
