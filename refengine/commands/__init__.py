"""What the command line does: one file a command, named as the command is; `refengine.cli` calls it.

Some commands have more than one: `report.py` is the main job; `verify_checkpoint.py` rests on `pair.py`, `hub.py`,
`memory.py`, `prompts.py`, `acceptance.py` and `dspark_heads.py`; `decode.py` on `decode_request.py` and
`decode_figures.py`; `law.py` on `rounding.py`; `told.py` words a finding for a person.
"""
