"""Bugs as edits of the running source: an edit, the import hook that serves it, and who imports the edited module.

Read `edit.py`, `loader.py`, `imports.py`.
"""
