"""The table of drafters by checks: the rows are the files of `rows/`, one for every drafter of the decoder."""

import pkgutil
from importlib import import_module

from refengine.decoder import drafters
from refengine.selfcheck.drafters import rows
from refengine.selfcheck.drafters.row import Row

# Files of `decoder/drafters` that are parts of drafters and none themselves.
PARTS = {"dart_ngrams", "dspark_schedule", "eagle_trees", "medusa_trees"}


def listing() -> dict[str, Row]:
    """Every row by name. Raises ImportError for a drafter of the decoder that has none, and for a name given twice."""
    files = {file.name for file in pkgutil.iter_modules(rows.__path__)}
    if missing := {file.name for file in pkgutil.iter_modules(drafters.__path__)} - files - PARTS:
        raise ImportError(f"drafter {min(missing)} has no file in {rows.__name__}: see refengine/decoder/drafters")
    found: dict[str, Row] = {}
    for file in sorted(files):
        own = import_module(f"{rows.__name__}.{file}").ROWS
        if twice := found.keys() & own.keys():
            raise ImportError(f"two rows have the name {min(twice)}")
        found |= own
    return found


ROWS = listing()


def place(drafter: str, check: str) -> dict[str, dict[str, list[str]]]:
    """The table of a finding that says which cell it stands for."""
    return {"battery": {"row": [drafter], "check": [check]}}
