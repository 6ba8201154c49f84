"""Bug and Edit: a known defect as data. A defect is a small change of the running source, never of a file on disk."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Expected: TypeAlias = Literal["violated", "consistent"]


@dataclass(frozen=True)
class Edit:
    """Replace `old`, which must occur exactly once in the source of `module`, by `new`."""

    module: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Bug:
    """One entry of the catalogue.

    id        short and stable: "ratio-accepts-always"
    title     what goes wrong, one line
    source    repository and thread, or the commit that was read
    part      part of the field survey that the row stands in: "A1" law, "A2" policy, "A3" stop and grammar,
              "A4" state, "A5" random numbers, "A6" metadata, numerics, lossy modes and false alarms
    law_class the class: entries of one class have one law at the audited signature, so data cannot tell them apart
    edits     how the source changes
    expected  "violated" for a defect; "consistent" for what the field takes for one and is none
    check     the check that must see it (other checks may see it too); what it then says, the smallest case in which
              its claim is false or the first assertion that fails, is on record (`benchmarks/results/findings.json`)
    """

    id: str
    title: str
    source: str
    part: str
    law_class: str
    edits: tuple[Edit, ...]
    expected: Expected = "violated"
    check: str
