"""The main job: third parties audited, then what the referee says about itself, which is on record.

What is on record is shown while it is fresh; what is stale runs again, and so does a sample that the commit's id draws.
The full report runs everything again and compares it with the record.
"""

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from refengine.audit.adapters import adapters
from refengine.bugs.catalogue.classes import glossary
from refengine.evidence.alpha import ALPHA
from refengine.jobs.steps import run_steps
from refengine.report.changes import changes
from refengine.report.changes import lines as lines_of
from refengine.report.html import save_html
from refengine.report.journal import Journal, run_key
from refengine.report.report import Report, make_report, save_report, unexpected
from refengine.report.run_record import save_run
from refengine.report.step import Step
from refengine.selfcheck.recorded import PRELOAD, sample, settle, summary
from refengine.selfcheck.steps import read_only
from refengine.selfcheck.steps import steps as own_steps
from refengine.source_tree import commit_id

SEED = 0


@dataclass(frozen=True)
class Outcome:
    """What the command line prints, and what decides its exit code."""

    lines: list[str]
    failed: bool
    subjects_violated: bool


def write_report(
    out: Path,
    *,
    full: bool = False,
    fresh: bool = False,
    against: tuple[Report, str] | None = None,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Make report.json, report.html and run.json in `out`; an interrupted run is resumed from its journal.

    `against` is an earlier report and its name, with which the page compares this one. `say` is handed the verdicts
    before anything but the journal is written. Raises BadInput where nothing can be.
    """
    started = datetime.datetime.now(datetime.UTC)
    commit = commit_id() or "no commit"
    chosen = list(steps(full))
    again = frozenset(step.name for step in chosen) if full else sample(commit)
    key = run_key(seed=SEED, alpha=ALPHA, options=f"{'full' if full else ''} {commit}")
    journal_file = out / "journal.jsonl"
    with Journal(journal_file, key, fresh=fresh) as journal:
        lines = run_steps(chosen, journal, partial(settle, again=again), preload=PRELOAD)
    hows = {line.step: line.how for line in lines if line.how}
    findings = [*(finding for line in lines for finding in line.made), summary(hows, again & hows.keys())]
    report = make_report(findings, seed=SEED, defects=glossary(finding.diagnosis for finding in findings))
    found = outcome(report)
    for line in found.lines:
        say(line)
    save_report(report, out / "report.json")
    since = changes(against[0], report, against[1]) if against else None
    for line in lines_of(since) if since else ():
        say(line)
    save_html(report, out / "report.html", since)
    save_run(out / "run.json", lines, started=started, key=key)
    journal_file.unlink(missing_ok=True)
    say(f"{out / 'report.html'} is the report; `refengine rerun {out / 'report.json'}` confirms it")
    return found


def steps(full: bool) -> Iterator[Step]:
    """The parts of the report: third parties first, then what the referee says about itself."""
    number = 0
    for adapter in adapters().values():
        for part, run in adapter.audits.items():
            yield Step(f"{adapter.name}: {part}", run, f"libraries {number % 2}")
            number += 1
    yield from own_steps(full)
    if not full:
        yield from read_only()


def outcome(report: Report) -> Outcome:
    """The last lines of the command, the exit code's reasons."""
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
        ],
        failed=bool(doubts),
        subjects_violated=any(f.role == "subject" and f.verdict == "violated" for f in report.findings),
    )
