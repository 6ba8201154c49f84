"""The main job: which sections a report has, and what its outcome means.

Sections import what they need when they run, so that a missing library is a finding of its own section and not the end
of the report.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from refengine.audit.adapters import adapters
from refengine.bugs.catalogue.classes import glossary
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding
from refengine.report.html import save_html
from refengine.report.journal import Journal, run_key
from refengine.report.progress import Section, run_sections
from refengine.report.report import Report, make_report, save_report, unexpected
from refengine.report.run_record import save_run

SEED = 0


@dataclass(frozen=True)
class Outcome:
    """What the command line prints, and what decides its exit code."""

    lines: list[str]
    failed: bool
    subjects_violated: bool


def write_report(out: Path, *, full: bool = False, fresh: bool = False) -> Outcome:
    """Make report.json, report.html and run.json in `out`; an interrupted run is resumed from its journal."""
    torch.set_num_threads(1)  # sums in one order on every machine; tiny networks are faster so, too
    started = datetime.datetime.now(datetime.UTC)
    key = run_key(seed=SEED, alpha=ALPHA, options="full" if full else "")
    journal_file = out / "journal.jsonl"
    with Journal(journal_file, key, fresh=fresh) as journal:
        lines = run_sections(sections(full), journal)
    findings = [finding for line in lines for finding in line.findings]
    report = make_report(findings, seed=SEED, defects=glossary(finding.diagnosis for finding in findings))
    save_report(report, out / "report.json")
    save_html(report, out / "report.html")
    save_run(out / "run.json", lines, started=started, key=key)
    journal_file.unlink()
    return outcome(report, out)


def sections(full: bool) -> list[Section]:
    """The parts of the report, cheapest first."""
    return [
        Section("rules", rules),
        Section("engine", engine),
        Section("decoder", lambda: decoder(full)),
        Section("effects in miniature", effects),
        Section("bridge", bridge),
        Section("bugs", bugs),
        Section("evidence", evidence),
        *libraries(),
    ]


def outcome(report: Report, out: Path) -> Outcome:
    """The last lines of the command, the exit code's reasons, and where to look."""
    counts = {
        role: ", ".join(
            f"{sum(f.verdict == verdict for f in report.findings if f.role == role)} {verdict}"
            for verdict in ("consistent", "violated", "not tested")
        )
        for role in ("subject", "reference", "control")
    }
    doubts = unexpected(report)
    return Outcome(
        lines=[
            f"third parties       {counts['subject']}",
            f"our own reference   {counts['reference']}",
            f"negative controls   {counts['control']}",
            *(f"UNEXPECTED {f.role} {f.verdict}: {f.id}" for f in doubts),
            f"{out / 'report.html'} is the report; `refengine rerun {out / 'report.json'}` confirms it",
        ],
        failed=bool(doubts),
        subjects_violated=any(f.role == "subject" and f.verdict == "violated" for f in report.findings),
    )


def rules() -> Iterable[Finding]:
    from refengine.selfcheck.rules import audit_rules

    return audit_rules()


def engine() -> Iterable[Finding]:
    from refengine.selfcheck.engine import audit_twins

    return audit_twins()


def bridge() -> Iterable[Finding]:
    from refengine.selfcheck.claims.coq_bridge import audit_bridge
    from refengine.selfcheck.claims.finding import audit_claims

    yield from audit_bridge()
    yield from audit_claims()


def decoder(full: bool) -> Iterable[Finding]:
    from refengine.selfcheck.drafters.battery import steps
    from refengine.selfcheck.drafters.committed_cells import shown
    from refengine.selfcheck.drafters.parallel import played
    from refengine.selfcheck.drafters.table import ROWS
    from refengine.source_tree import FIXTURES

    for _, findings in played(list(steps(full))):
        yield from findings
    if FIXTURES.is_dir() and not full:
        for drafter in ROWS:
            yield from shown(drafter)


def effects() -> Iterable[Finding]:
    from refengine.selfcheck.effects.overlap import effects
    from refengine.selfcheck.effects.training import training

    return [*effects(), *training()]


def bugs() -> Iterable[Finding]:
    from refengine.bugs.kill_matrix import kill_matrix

    return kill_matrix()


def evidence() -> Iterable[Finding]:
    from refengine.selfcheck.instrument.finding import findings

    return findings()


def libraries() -> Iterable[Section]:
    """A section for every audit of a library that has an adapter."""
    for adapter in adapters().values():
        for part, run in adapter.audits.items():
            yield Section(f"{adapter.name}: {part}", run)
