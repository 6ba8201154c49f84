"""Parts of networks that several drafters share, each written from the released code of its family.

Read `layers.py`, `rope.py`, `cache.py`, `windows.py`, `draft_vocabulary.py`; `feature_recurrence.py` (EAGLE),
`block_backbone.py` (DFlash, DSpark), `experts.py`, `latent_attention.py`.
"""
