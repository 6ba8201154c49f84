"""How checkpoints are read: strictly, field by field and tensor by tensor.

Read `config.py`, `tensors.py`, `unread_fields.py`, `rope.py`, `sliding.py`; `causal_lm.py`, `target_probe.py` and
`from_target.py` are about the target.
"""
