"""The kill matrix: every entry of the catalogue against every check, each entry in a process of its own."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from refengine.bugs.catalogue import NOT_EXPRESSED, all_bugs, find
from refengine.bugs.checks import CHECKS
from refengine.bugs.mutation.record import committed
from refengine.bugs.process.pool import Answer, Job, checks_that_load, run_jobs
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe
from refengine.source_edits.edit import Bug
from refengine.source_edits.loader import edited_source

LAWS = ("rounds:law", "rounds:coins", "loops:law", "loops:coins", "decoding:law", "decoding:coins")
SECONDS = 30.0  # processor time of one check; the longest takes one second


def kill_matrix(progress: Callable[[str], None] = lambda name: None) -> list[Finding]:
    """The unedited source, every entry, the committed mutation run. `progress` is told of each entry that is done."""
    jobs = [Job("", {}, tuple(CHECKS), seconds=SECONDS), *(job_of(bug) for bug in all_bugs())]
    first, *rest = run_jobs(jobs, done=lambda job: progress(job.name))
    seen = [finding(bug, answers) for bug, answers in zip(all_bugs(), rest, strict=True)]
    return [unedited(first), *seen, *map(not_expressed, NOT_EXPRESSED), *committed()]


def rerun(name: str = "") -> list[Finding]:
    """The findings of one entry again; "" is the unedited source."""
    bug = find(name) if name else None
    (answers,) = run_jobs([job_of(bug) if bug else Job("", {}, tuple(CHECKS), seconds=SECONDS)])
    return [finding(bug, answers) if bug else unedited(answers)]


def job_of(bug: Bug) -> Job:
    """The job that runs every check which loads an edited module; on a disputed entry, the checks of laws."""
    sources = {edit.module: edited_source(edit.module, bug.edits) for edit in bug.edits}
    checks = checks_that_load(tuple(sources))
    if bug.expected == "consistent":  # the dispute is about the law; where its coins stand is our own discipline
        checks = tuple(check for check in checks if check in LAWS)
    return Job(bug.id, sources, checks, seconds=SECONDS)


def unedited(answers: list[Answer]) -> Finding:
    """Every check holds on the source as it ships: without this a kill means nothing."""
    failing = [answer for answer in answers if answer.outcome != "holds"]
    return Finding(
        id="bugs/none",
        subject="refengine, unedited",
        claim="Every general check holds on the source as it ships.",
        source="refengine.bugs.checks",
        verdict="violated" if failing or len(answers) < len(CHECKS) else "consistent",
        method=f"{len(CHECKS)} checks in a fresh process",
        numbers={"checks": len(answers), "failing": len(failing)},
        witness={answer.check: answer.detail for answer in failing} or None,
        recipe=Recipe(function=f"{__name__}:rerun"),
    )


def finding(bug: Bug, answers: list[Answer]) -> Finding:
    """Violated where a check found the claim false. A crash or a hang is told apart, and kills nothing."""
    killers = [answer for answer in answers if answer.outcome == "violated"]
    by_name = {answer.check: answer for answer in killers}
    named = by_name.get(bug.check)
    main = named or next(iter(killers), None)
    notes = [
        f"{answer.check} {answer.outcome}: {answer.detail}"
        for answer in answers
        if answer.outcome in ("crashed", "hung")
    ]
    if bug.expected == "violated" and killers and named is None:
        notes.append(f"expected to be seen by {bug.check}, which held")
    return Finding(
        id=f"bugs/{bug.id}",
        subject=f"refengine where {bug.title}",
        claim=f"With the edit {bug.id}, every general check holds.",
        source=bug.source,
        role="control" if bug.expected == "violated" else "reference",
        verdict="violated" if killers else "consistent",
        method=f"{len(answers)} of {len(CHECKS)} checks load the edited source; they ran in a fresh process",
        numbers={
            "checks run": len(answers),
            "checks that see it": len(killers),
            "class": bug.law_class,
            "part": bug.part,
        },
        magnitude=magnitude(main),
        witness={"check": main.check, "what": main.detail, **main.witness} if main else None,
        diagnosis=bug.law_class if killers else "",
        notes=notes,
        tables={"kill matrix": columns(bug, answers)},
        recipe=Recipe(function=f"{__name__}:rerun", arguments={"name": bug.id}),
    )


def not_expressed(row: tuple[str, str, str]) -> Finding:
    """A row of the field survey that no edit of this package can express."""
    source, part, reason = row
    return Finding(
        id=f"bugs/not-expressed/{source.split(',')[0].split(';')[0]}",
        subject="refengine.bugs.catalogue",
        claim=f"The defect of {source} (part {part}) is in the catalogue.",
        source=source,
        verdict="not tested",
        reason=reason,
        method="an edit of the running source",
        recipe=Recipe(function=f"{__name__}:rerun_not_expressed"),
    )


def rerun_not_expressed() -> list[Finding]:
    return [not_expressed(row) for row in NOT_EXPRESSED]


def magnitude(answer: Answer | None) -> Magnitude | None:
    """The exact TV on the smallest witness, where the check is about a law."""
    if answer is None or answer.tv is None:
        return None
    rounding = 1e-8 if answer.check.startswith("decoding") else 0.0  # the decode loop's laws are sums of float64
    return Magnitude(tv=Quantity(value=float(Fraction(answer.tv)), tolerance=rounding), exact=True)


def columns(bug: Bug, answers: list[Answer]) -> dict[str, list[Any]]:
    """The row of the matrix: a check that does not load the edited source cannot see it, and did not run."""
    outcome = {answer.check: answer.outcome for answer in answers}
    words = {"violated": "killed", "holds": "survived"}
    return {
        "bug": [bug.id] * len(CHECKS),
        "class": [bug.law_class] * len(CHECKS),
        "check": [check.rpartition("/")[2].removesuffix(".py") for check in CHECKS],  # of a file of tests, its name
        "outcome": [words.get(outcome.get(check, ""), outcome.get(check, "not concerned")) for check in CHECKS],
    }
