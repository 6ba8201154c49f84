"""What is violated, in the words of its verdict line: claims of which the same is said have one entry."""

import re
from collections.abc import Sequence

SHOWN = 3  # names of an entry
NUMBERS = re.compile(r" for \d+ characters|(?<=its last) \d+")  # in which claims that say the same differ
OF_PARAMETER = re.compile(r"(?P<before>.*, also in requests with )(?P<name>.+)")
OF_CLAIM = re.compile(r"(?P<name>.+?)(?P<after>: .+)")


def in_few_words(diagnoses: Sequence[str]) -> list[str]:
    """Of several diagnoses, in their order, what each says before its details; all of the first, if all say the same of
    one parameter."""
    entries: dict[tuple[str, str], list[str]] = {}
    for said in dict.fromkeys(NUMBERS.sub("", said.partition("; ")[0]) for said in diagnoses):
        parts = OF_PARAMETER.fullmatch(said) or OF_CLAIM.fullmatch(said)
        told = parts.groupdict() if parts else {"before": said, "name": ""}
        entries.setdefault((told.get("before", ""), told.get("after", "")), []).append(told["name"])
    found = [before + _listed(names) + after for (before, after), names in entries.items()]
    return [*diagnoses[:1]] if found == [said.partition("; ")[0] for said in diagnoses[:1]] else found


def _listed(names: Sequence[str]) -> str:
    """One as it is; of several the parameters alone, not how each was asked for."""
    listed = [*dict.fromkeys(re.split(r", | \(", name)[0] for name in names)] if len(names) > 1 else names
    more = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {more} more" if more > 0 else "")
