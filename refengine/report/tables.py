"""Two pictures that are made of all findings together: bugs by checks, and drafters by checks."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from refengine.report.finding import DRAWN, Finding, Verdict
from refengine.report.report import Report

MATRIX, BATTERY = "kill matrix", "battery"
ALONE = "each alone in its class"
GRAVE: tuple[Verdict, ...] = ("violated", "not tested", "consistent")


@dataclass(frozen=True)
class Row:
    """A bug in the kill matrix: one outcome per check, None where the check does not apply."""

    kind: str
    bug: str
    finding: Finding
    outcomes: list[str | None]

    @property
    def kills(self) -> int:
        return self.outcomes.count("killed")

    @property
    def missed(self) -> bool:
        return self.kills == 0 and self.finding.role == "control"


@dataclass(frozen=True)
class Matrix:
    """Bugs by checks, the bugs of one class together."""

    checks: list[str]
    rows: list[Row]


def matrix(report: Report) -> Matrix:
    """The kill matrix of all findings that have a part of it; classes and checks in the order of their first entry.

    Bugs that are alone in their class stand together at the end.
    """
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    findings = {finding.id: finding for finding in report.findings}
    for finding in findings.values():
        columns = finding.tables.get(MATRIX, dict.fromkeys(DRAWN[MATRIX], ()))
        for bug, kind, check, outcome in zip(*(columns[name] for name in DRAWN[MATRIX]), strict=True):
            cells.setdefault((kind, bug, finding.id), {})[check] = outcome
    sizes = Counter(kind for kind, _, _ in cells)
    order = [kind for kind in sizes if sizes[kind] > 1] + [kind for kind in sizes if sizes[kind] == 1]
    checks = list(dict.fromkeys(check for outcomes in cells.values() for check in outcomes))
    rows = [
        Row(
            kind if sizes[kind] > 1 else ALONE,
            bug,
            findings[finding_id],
            [outcomes.get(check) for check in checks],
        )
        for (kind, bug, finding_id), outcomes in sorted(cells.items(), key=lambda item: order.index(item[0][0]))
    ]
    return Matrix(checks, rows)


@dataclass(frozen=True)
class Battery:
    """Rows by checks: the gravest finding of each cell, None where there is none."""

    checks: list[str]
    rows: dict[str, list[Finding | None]]


def battery(findings: Iterable[Finding]) -> Battery:
    """The table of all findings that have a place in it, rows and checks in the order of their first entry."""
    cells: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        columns = finding.tables.get(BATTERY, dict.fromkeys(DRAWN[BATTERY], ()))
        for place in zip(*(columns[name] for name in DRAWN[BATTERY]), strict=True):
            cells[place] = min((cells.get(place, finding), finding), key=lambda f: GRAVE.index(f.verdict))
    checks = list(dict.fromkeys(check for _, check in cells))
    rows = dict.fromkeys(row for row, _ in cells)
    return Battery(checks, {row: [cells.get((row, check)) for check in checks] for row in rows})
