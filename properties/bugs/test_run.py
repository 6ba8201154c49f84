"""Jobs on edited source: what counts as a detection and what does not; mutants; the committed mutation run."""

from dataclasses import replace

import pytest

from refengine.bugs.catalogue import find
from refengine.bugs.checks import CHECKS
from refengine.bugs.kill_matrix import finding, job_of, unedited
from refengine.bugs.mutation import record
from refengine.bugs.mutation.mutants import mistakes_in, mutants
from refengine.bugs.mutation.record import (
    Explanation,
    Record,
    doubts,
    explanations,
    sample,
    subjects,
    unchanged,
)
from refengine.bugs.mutation.run import run
from refengine.bugs.process.pool import Answer, Job, checks_that_load, run_jobs
from refengine.source_edits.edit import Edit
from refengine.source_edits.imports import imported
from refengine.source_edits.loader import edited_source

LOOP, ROW, BLOCK = "refengine.exact.loop", "refengine.exact.row", "refengine.exact.block"
ROWS = "pytest:properties/exact_and_engine/test_exact_rows.py"


def edited(name: str, module: str, old: str, new: str, *checks: str, seconds: float = 300.0) -> Job:
    return Job(name, {module: edited_source(module, [Edit(module, old, new)])}, checks, seconds=seconds)


def test_only_a_false_claim_or_a_named_refusal_is_a_detection() -> None:
    """Kills a harness that counts crashes, deaths and hangs as kills, or in which test files cannot run at all."""
    adding = "    return tuple(max(px - qx, Fraction(0)) for px, qx in zip(p, q, strict=True))"
    jobs = [
        edited("false", ROW, "max(px - qx, Fraction(0))", "px", "rounds:law"),
        edited(
            "refused", ROW, adding, "    return tuple(px - qx for px, qx in zip(p, q, strict=True))", "rounds:shape"
        ),
        edited("crash", ROW, adding, "    return p[99]", "rounds:law"),
        edited("death", ROW, adding, "    import os\n    os._exit(3)", "rounds:law"),
        edited("exit", ROW, adding, "    raise SystemExit(0)", "rounds:law"),
        edited("hang", ROW, adding, "    while True: pass", "rounds:law", "rounds:shape", seconds=1.0),
        Job("tests", {}, (ROWS,)),
        edited("false in a test", ROW, "max(px - qx, Fraction(0))", "px", ROWS),
        edited("not refused in a test", BLOCK, "if not ROOT <= parent < node:", "if False:", ROWS),
        edited("crash in a test", ROW, adding, "    return p[99]", ROWS),
        edited("hang in a test", ROW, adding, "    while True: pass", ROWS, seconds=6.0),
        edited("import", ROW, '"""A row:', 'raise OSError("no")\n"""A row:', "rounds:law"),
    ]
    outcomes = {job.name: [a.outcome for a in answers] for job, answers in zip(jobs, run_jobs(jobs), strict=True)}
    assert outcomes == {
        "false": ["violated"],
        "refused": ["violated"],
        "crash": ["crashed"],
        "death": ["crashed"],
        "exit": ["crashed"],
        "hang": ["hung"],
        "tests": ["holds"],
        "false in a test": ["violated"],
        "not refused in a test": ["violated"],
        "crash in a test": ["crashed"],
        "hang in a test": ["hung"],
        "import": ["crashed"],
    }


def test_the_unedited_source_passes_every_check_and_known_defects_do_not() -> None:
    """Kills a check that fails by itself or was not run, and a matrix that reports kills without one. Checks that are
    files of tests are left out: they run by themselves, and one of them in a job above."""
    names = [
        "resample-from-target",
        "redrafted-position-keeps-coins",
        "feature-of-rejected-token",
        "point-mass-siblings",
    ]
    files = [check for check in CHECKS if check.startswith("pytest:")]
    witnessed = tuple(check for check in CHECKS if check not in files)
    jobs = [Job("", {}, witnessed), *(replace(job_of(find(n)), checks=(find(n).check,)) for n in names[:3])]
    jobs.append(job_of(find(names[3])))
    first, *rest = run_jobs(jobs)
    assert unedited([*first, *(Answer(file, "holds") for file in files)]).verdict == "consistent"
    assert unedited(first).verdict == "violated"
    law, coins, state, dispute = (finding(find(n), answers) for n, answers in zip(names, rest, strict=True))
    assert (law.verdict, coins.verdict, state.verdict, dispute.verdict) == ("violated",) * 3 + ("consistent",)
    assert law.magnitude is not None
    assert law.magnitude.tv.value == 0.25  # p = (1/2, 1/2), q = (1, 0): half is refused, and half of that is 0 again
    assert law.witness is not None
    assert law.witness["check"] == "rounds:law"
    assert coins.witness is not None
    assert coins.witness["check"] == "loops:coins"
    assert state.witness is not None
    assert state.witness["check"] == "decoding:state"
    assert dispute.role == "reference"


def test_a_crash_is_reported_and_kills_nothing() -> None:
    """Kills a finding that turns violated because a check crashed."""
    bug = find("resample-from-target")
    crashed = finding(bug, [Answer("rounds:law", "crashed", "IndexError: no")])
    assert crashed.verdict == "consistent"
    assert crashed.notes == ["rounds:law crashed: IndexError: no"]


def test_checks_run_only_where_an_edit_can_be_seen() -> None:
    """Kills an import reader that misses an indirect import, or takes everything for concerned."""
    assert "refengine.exact.chance" in imported("refengine.decoder.loop")
    assert "network:passes" not in checks_that_load((LOOP,))
    assert set(checks_that_load((LOOP,))) >= {"loops:law", "loops:coins", "loops:sites"}
    assert checks_that_load(("refengine.cli",)) == ()


def test_mutants_are_the_mistakes_of_the_running_text() -> None:
    """Kills a mutator that misses a comparison, clamp, index, prefix or swap, or edits messages and annotations."""
    text = '''
def f(p: "tuple[int, ...]", q, n: int = 1) -> "list[int]":
    """x < y"""
    if p[n] < q and not n:
        raise ValueError(f"{p} < {q} by 1")
    return [max(a - b, 0) for a, b in zip(p[:n], range(n))] + g(p, q).clamp(min=0)
'''
    changes = {piece.change for piece in mistakes_in(text)}
    assert changes == {
        "`1` to `2`", "`1` to `0`", "`n` to `n + 1`", "`n` to `n - 1`", "`<` to `<=`", "`<` to `>=`", "`and` to `or`",
        "`not n` to `(n)`", "`p[n] < q and not n` to `(not (p[n] < q and not n))`", "`max` to `min`", "`-` to `+`",
        "`0` to `1`", "`0` to `(-1)`", "`p[:n]` and `range(n)` swapped", "`+` to `-`", "`p` and `q` swapped",
        "`g(p, q).clamp(min=0)` to `g(p, q)`", "`p[n] < q and not n` to `(p[n] < q)`",
        "`p[n] < q and not n` to `(not n)`", "`p[n] < q and not n` to `True`", "`p[n] < q and not n` to `False`",
        "`raise ValueError(f\"{p} < {q} by 1\")` to `pass`", "`max(a - b, 0)` to `(a - b)`", "`max(a - b, 0)` to `(0)`",
        "`:n` to `:`",
    }  # fmt: skip


def test_guards_may_be_left_out() -> None:
    """Kills a mutator for which every guard stands: a `where`, a mask, an early return, a value that is replaced."""
    text = """
def f(p, live, there):
    live = live & ~there
    fresh = torch.where(live, p, 0.0).where(there, 1.0)
    p[:, 0] = fresh
    if live:
        return fresh
"""
    changes = {piece.change for piece in mistakes_in(text)}
    assert changes >= {
        "`live & ~there` to `(live)`", "`live & ~there` to `(~there)`", "`live = live & ~there` to `pass`",
        "`torch.where(live, p, 0.0).where(there, 1.0)` to `torch.where(live, p, 0.0)`",
        "`torch.where(live, p, 0.0)` to `(p)`", "`torch.where(live, p, 0.0)` to `(0.0)`", "`p[:, 0] = fresh` to `pass`",
        "`live` to `False`", "`live` to `True`",
    }  # fmt: skip
    assert "`fresh = torch.where(live, p, 0.0).where(there, 1.0)` to `pass`" not in changes  # nothing to fall back on


def test_a_seeded_sample_of_mutants_falls() -> None:
    """Kills a check that has lost its teeth: eight mistakes that the committed run killed must be killed again."""
    chosen = sample(8, seed=20261121)
    assert len(chosen) == 8, "no committed mutation run covers the files as they are now: `make mutation` makes one"
    for now in run(chosen):
        assert now.outcome == "killed", (now.mutant.module, now.mutant.number, now.mutant.change)


def test_explanations_are_of_mutants_that_exist_and_the_committed_run_has_no_doubts() -> None:
    """Kills an explanation whose line has changed, one that is too wide, and a survivor that nobody has explained."""
    possible = [mutant.key() for module in subjects() for mutant in mutants(module)]
    assert len(set(possible)) == len(possible)
    for e in explanations():
        found = {text for key in possible if e.covers(key) for text in key}
        assert {*e.modules, *e.lines, *e.changes} <= found, e
        assert e.why
    assert doubts(unchanged()) == []


def test_doubts_name_survivors_and_explanations_that_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a run that passes over an unexplained survivor, a stale explanation, or one that covers a killed mutant."""
    module = "refengine.exact.rules.agreement"
    keys = [mutant.key() for mutant in mutants(module)]

    def said(outcomes: str, *explained: Explanation) -> list[str]:
        monkeypatch.setattr(record, "explanations", lambda: explained)
        return doubts({module: Record(outcomes, {})})

    def reason(*numbers: int) -> Explanation:
        return Explanation((module,), tuple(keys[n][1] for n in numbers), tuple(keys[n][2] for n in numbers), "so")

    killed = "k" * (len(keys) - 1)
    assert said("k" + killed) == []
    assert [line.split(":")[0] for line in said("s" + killed)] == ["survived"]
    assert said("s" + killed, reason(0)) == []
    assert "explained and yet it falls" in {line.split(":")[0] for line in said("s" + killed, reason(0, 1))}
    assert {line.split(":")[0] for line in said("c" + killed, reason(0))} > {"explains nothing"}
