"""Bugs as edits of the running source, and records that are stale when the source that they ran through changes.

Read `edit.py` (an edit), `loader.py` (the import hook that serves it), `imports.py` (who imports the edited module),
`committed.py` (a committed record under the digest of its source).
"""
