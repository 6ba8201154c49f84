"""Two reports side by side: what appeared, what went, and what moved."""

from dataclasses import dataclass

from refengine.report.finding import Finding
from refengine.report.report import Report

MOVED = 0.1  # of a total variation, from which on it has moved


@dataclass(frozen=True)
class Change:
    """One finding: its id, what became of it, and whether the newer report has it."""

    id: str
    said: str
    here: bool


@dataclass(frozen=True)
class Changes:
    """name: of the earlier report. rows: by kind, the gravest first. same: findings that are as they were."""

    name: str
    rows: dict[str, list[Change]]
    same: int


def changes(old: Report, new: Report, name: str) -> Changes:
    """What became of every finding since `old`."""
    before, now = ({finding.id: finding for finding in report.findings} for report in (old, new))
    both = [(before[key], now[key]) for key in sorted(before.keys() & now.keys())]
    verdicts = [(a, b) for a, b in both if a.verdict != b.verdict]
    sizes = [(a, b) for a, b in both if a.verdict == b.verdict and _moved(a, b)]
    rows = {
        "Violated now": [_row(b, f"was {a.verdict}") for a, b in verdicts if b.verdict == "violated"],
        "No longer violated": [_row(b, f"now {b.verdict}") for a, b in verdicts if a.verdict == "violated"],
        "Otherwise decided": [
            _row(b, f"was {a.verdict}, now {b.verdict}")
            for a, b in verdicts
            if "violated" not in (a.verdict, b.verdict)
        ],
        "Moved": [_row(b, f"total variation was {_tv(a):.3g}, now {_tv(b):.3g}") for a, b in sizes],
        "Appeared": [_row(now[key], now[key].verdict) for key in sorted(now.keys() - before.keys())],
        "Went": [Change(key, f"was {before[key].verdict}", False) for key in sorted(before.keys() - now.keys())],
    }
    return Changes(name, rows, len(both) - len(verdicts) - len(sizes))


def lines(found: Changes) -> list[str]:
    """The same for a terminal."""
    told = [f"{title}: {row.id} ({row.said})" for title, rows in found.rows.items() for row in rows]
    return [*told, f"{found.same} findings are as in {found.name}"]


def _row(finding: Finding, said: str) -> Change:
    return Change(finding.id, said, True)


def _tv(finding: Finding) -> float:
    return finding.magnitude.tv.value if finding.magnitude else 0.0


def _moved(a: Finding, b: Finding) -> bool:
    """A size that is off by more than a tenth of the larger."""
    return abs(_tv(a) - _tv(b)) > MOVED * max(_tv(a), _tv(b))
