"""Released checkpoints, read strictly: names, shapes, dtypes and config are compared with one another.

Read `load.py` (from a folder to a target or a drafter), `reading/` (how files are read), `layouts/` (the releases);
`streamed.py` is for a model that is larger than memory.
"""
