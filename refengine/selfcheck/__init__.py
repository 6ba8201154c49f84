"""Our own reference, held to what it promises: findings of the role `reference`, and their committed records.

Read `rules.py` and `engine.py` (rules), `drafters/` (the decoder), `claims/` (theorems and documents), `instrument/`
(the statistics themselves), `effects/` (what drafters gain from what), `documents/` (programs in print).
"""
