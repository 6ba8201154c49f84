"""What the referee says about itself, in steps: each with the digest of what it is computed from."""

from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module

from refengine.report.finding import Finding
from refengine.report.step import Step
from refengine.source_edits.committed import digest, file_digest, module_digest
from refengine.source_edits.imports import file_of
from refengine.source_tree import FIXTURES, ROOT

RULES = ("refengine.exact.rules", "refengine.engine.rules")  # looked up by their names, so no import shows them
BUG_PLACES = 2  # each holds a fork server of its own


def steps(full: bool = False) -> Iterator[Step]:
    """Everything that is on record, the short ones first; `full` adds every policy of every drafter."""
    yield _step("exact rules", "refengine.selfcheck.rules:audit_rules")
    yield _step("engine against exact", "refengine.selfcheck.engine:audit_twins")
    yield _step("bridge to Coq", "refengine.selfcheck.claims.coq_bridge:audit_bridge")
    yield _step("calibration", "refengine.selfcheck.instrument.finding:replay", "calibration")
    yield _step("power", "refengine.selfcheck.instrument.finding:replay", "power")
    yield _step("tie or defect", "refengine.selfcheck.instrument.ties:finding")
    yield _step("overlap in miniature", "refengine.selfcheck.effects.overlap:effects")
    yield _step("confidence in miniature", "refengine.selfcheck.effects.confidence:confidence")
    yield _step("tokens per pass", "refengine.selfcheck.effects.training:training")
    yield from _bugs()
    yield from _battery(full)


def read_only() -> Iterator[Step]:
    """What only looks records up, and is made each time anew."""
    for name in ("selfcheck.claims.finding:audit_claims", "bugs.mutation.record:committed", "selfcheck.gpu:findings"):
        yield Step(name.partition(":")[0], partial(_run, f"refengine.{name}"), "records")
    yield Step("not expressed", partial(_run, "refengine.bugs.kill_matrix:rerun_not_expressed"), "records")
    if FIXTURES.is_dir():
        from refengine.selfcheck.drafters.table import ROWS

        yield Step("bits of histories", partial(_run, "refengine.selfcheck.drafters.committed_bits:shown"), "records")
        for drafter in ROWS:
            yield Step(
                f"every policy of {drafter}",
                partial(_run, "refengine.selfcheck.drafters.committed_cells:shown", drafter),
                ROWS[drafter].folder or "no checkpoint",
            )


def _step(name: str, function: str, *arguments: str) -> Step:
    return Step(name, partial(_run, function, *arguments), name, partial(_digest, function.partition(":")[0]))


def _run(function: str, *arguments: str) -> list[Finding]:
    """Imported when it runs: a missing library is a finding of its own step and not the end of the report."""
    module, _, name = function.partition(":")
    return list(getattr(import_module(module), name)(*arguments))


@cache
def _digest(module: str) -> str:
    """Of a module, of all that it imports, of every rule, and of the data of the repository that it may read."""
    rules = [file_digest(file) for package in RULES for file in sorted(file_of(package).parent.glob("*.py"))]
    data = [file.read_bytes() for file in (ROOT / "proofs" / "bridge.json",) if file.is_file()]
    if ".effects." in module:
        from refengine.selfcheck.drafters.computed_from import files

        data.append(files(FIXTURES).encode())
    return digest(module_digest(module), *rules, *data)


def _bugs() -> Iterator[Step]:
    from refengine.bugs.catalogue import all_bugs

    for number, name in enumerate(["", *(bug.id for bug in all_bugs())]):
        place = f"bugs {number % BUG_PLACES}"
        run = partial(_run, "refengine.bugs.kill_matrix:rerun", name)
        yield Step(f"bug {name}".strip() if name else "unedited source", run, place, partial(_bug_digest, name))


@cache
def _bug_digest(name: str) -> str:
    """Of an entry of the catalogue and of every check that loads what it edits."""
    from refengine.bugs.catalogue import find
    from refengine.bugs.checks import CHECKS
    from refengine.bugs.kill_matrix import job_of
    from refengine.bugs.process.pool import source_of

    bug = find(name) if name else None
    checks = job_of(bug).checks if bug else tuple(CHECKS)
    sources = {source_of(check) for check in checks}
    return digest(
        repr(bug),
        repr(checks),
        *sorted(map(file_digest, sources)),
        module_digest("refengine.bugs.process.job"),
    )


def _battery(full: bool) -> Iterator[Step]:
    from refengine.selfcheck.drafters.battery import steps

    return steps(full)
