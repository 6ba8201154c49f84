"""The pytest plugin (imports no torch at collection)."""
