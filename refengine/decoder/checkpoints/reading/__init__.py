"""How checkpoints are read: strictly, field by field and tensor by tensor.

Read `checkpoint.py` (a folder, and what a layout is), `config.py`, `tensors.py`, `unread_fields.py`, `rope.py`,
`sliding.py`, `draft_vocabulary.py`; `causal_lm.py`, `target_probe.py` and `from_target.py` are about the target.
"""
