"""`refengine show`: reports that audits have written, on one page; beside an earlier one where that is asked for."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from refengine.bugs.catalogue.classes import glossary
from refengine.errors import BadInput
from refengine.report.changes import Changes, changes
from refengine.report.html import save_html
from refengine.report.report import Report, load_report


def show(files: Sequence[Path], page: Path, against: Path | None = None) -> tuple[Report, Changes | None]:
    """Write the page of these reports. Raises BadInput where one cannot be read, or two have a finding of one id."""
    report = together({str(file): load_report(file) for file in files})
    found = changes(load_report(against), report, str(against)) if against else None
    save_html(report, page, found)
    return report, found


def together(reports: dict[str, Report]) -> Report:
    """One report of the findings of several, with the versions of all; by file. Raises BadInput for an id of two."""
    of: dict[str, str] = {}
    for file, report in reports.items():
        for finding in report.findings:
            if finding.id in of:
                raise BadInput(f"{file} and {of[finding.id]} both have the finding {finding.id!r}: show one of them")
            of[finding.id] = file
    first, *others = reports.values()
    names = sorted({name for report in reports.values() for name in report.environment})
    findings = sorted((f for report in reports.values() for f in report.findings), key=lambda finding: finding.id)
    return msgspec.structs.replace(
        first,
        engine=_all(report.engine for report in reports.values()) if others else first.engine,
        environment={name: _all(r.environment.get(name, "absent") for r in reports.values()) for name in names},
        findings=findings,
        defects=glossary(finding.diagnosis for finding in findings),
    )


def _all(versions: Iterable[str]) -> str:
    """Versions that differ, once each."""
    return " and ".join(dict.fromkeys(versions))
