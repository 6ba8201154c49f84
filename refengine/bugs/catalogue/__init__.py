"""The catalogue: real defects, each an edit of the running source; one file for a part of decoding.

Read `law.py` (the rule), `proposer.py` (the row q), `policy.py`, `stop.py`, `state.py` (caches), `randomness.py`,
`modes.py` (lossy by design, and what the field wrongly takes for defects); `classes.py` has the classes that diagnoses
name.
"""

import difflib

from refengine.bugs.catalogue import law, modes, policy, proposer, randomness, state, stop
from refengine.bugs.catalogue.modes import NOT_EXPRESSED
from refengine.source_edits.edit import Bug

__all__ = ["NOT_EXPRESSED", "all_bugs", "find"]

PARTS = (law, proposer, policy, stop, state, randomness, modes)


def all_bugs() -> list[Bug]:
    """Every entry, in a fixed order."""
    return [bug for part in PARTS for bug in part.BUGS]


def find(name: str) -> Bug:
    """The entry with this id; ValueError with the nearest names where there is none."""
    by_id = {bug.id: bug for bug in all_bugs()}
    if name not in by_id:
        near = difflib.get_close_matches(name, by_id, n=3, cutoff=0.3)
        raise ValueError(f"unknown bug {name!r}" + (f": did you mean {', '.join(near)}?" if near else ""))
    return by_id[name]
