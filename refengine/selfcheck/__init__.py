"""Our own reference, compared with what it promises: findings of the role `reference`, and their committed records.

Read `rules.py` and `engine.py` (rules), `drafters/` (the decoder), `claims/` (theorems and documents), `instrument/`
(the statistics themselves), `effects/` (what drafters gain from what), `documents/` (programs in print). `steps.py`
lists what a report says of ourselves, `recorded.py` keeps those findings, `tests_on_record.py` says which tests passed
on this text, `records.py` lists every committed record. At length: `at_length.py` with `rounds.py`,
`tests_at_length.py`, `gpu.py`.
"""
