"""Which mistakes in a rule the tests that a claim names see by themselves.

A chain (`mutants_of_rules.py`) shows that no mistake in a rule passes all of its tests. A claim is about one thing that
the rule does, so its own tests need not see every mistake: what they see is a share. It says that they touch the rule,
not that they test the claim. Tests that see none are about something else, and such a claim is shown as blind.
`python -m refengine.selfcheck.claims.claims --link` runs the tests of every claim against a seeded sample of the
mutants of its rules, of the exact text and of the engine's, and writes `proofs/own_tests.json`, file by file; it
resumes.

Statistical tests are left out: they run for minutes, and what they see is a matter of their stated power. A test that
imports the rule by no way sees none of its mistakes and is not run.
"""

import random
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from refengine.bugs.mutation.mutants import Mutant, mutants
from refengine.bugs.mutation.record import explained
from refengine.bugs.process.pool import Answer, Job, run_jobs
from refengine.selfcheck.claims import mutants_of_rules
from refengine.selfcheck.claims.chains import CHAINS, files
from refengine.source_edits.committed import Committed, digest
from refengine.source_edits.imports import imported, names_of
from refengine.source_tree import PROOFS, ROOT

COMMAND = "python -m refengine.selfcheck.claims.claims --link"
COUNT, SEED = 4, 0
SECONDS = 25.0  # processor time of one test of one mutant; unedited source takes up to twelve


def texts(chains: Sequence[str]) -> tuple[str, ...]:
    """The files that chains run through, once."""
    return tuple(dict.fromkeys(file for chain in chains for file in files(chain)))


def sample(module: str) -> list[Mutant]:
    """The mistakes of one file that claims are held to."""
    able = [mutant for mutant in mutants(module) if not explained(mutant.key())]
    return random.Random(SEED).sample(able, min(COUNT, len(able)))


def run(wanted: Mapping[str, Sequence[str]]) -> None:
    """Run the tests wanted for each file on its sample, as far as the record has not got them, and write it."""
    for number, (module, tests) in enumerate(wanted.items(), 1):
        asked = RECORD.fresh(module) or {"tests": [], "seen": [[] for _ in sample(module)]}
        new = [test for test in tests if test not in asked["tests"]]
        able = [test for test in new if reaches(ROOT / test.partition("::")[0], module)]
        print(f"[{number}/{len(wanted)}] {module}: {len(able)} tests to run", file=sys.stderr, flush=True)
        pass_unedited(able)
        jobs = [Job(f"{m.number}", {m.module: m.source}, checks(able), seconds=SECONDS) for m in sample(module)]
        ran = run_jobs(jobs, at_once=1)
        seen = [sorted({*known, *red(answers)}) for known, answers in zip(asked["seen"], ran, strict=True)]
        keys = [list(m.key()[1:]) for m in sample(module)]
        RECORD.put(module, {"mutants": keys, "tests": sorted({*asked["tests"], *new}), "seen": seen})


def pass_unedited(tests: Sequence[str]) -> None:
    """Raises RuntimeError where one does not: it would be red, whatever the mistake, as one that is not there is."""
    (answers,) = run_jobs([Job("unedited", {}, checks(tests), seconds=SECONDS)], at_once=1)
    if failed := [f"{a.check}: {a.detail}" for a in answers if a.outcome in ("violated", "crashed")]:
        raise RuntimeError(f"on unedited source {failed[0]}")


def red(answers: Sequence[Answer]) -> list[str]:
    """The tests that failed. One whose time ran out has not: it might have passed."""
    return [a.check.removeprefix("pytest:") for a in answers if a.outcome in ("violated", "crashed")]


def checks(tests: Sequence[str]) -> tuple[str, ...]:
    """Solvers and networks last: a test whose time runs out ends the job."""
    slow = ("/smt/", "test_decoder", "golden")
    return tuple(f"pytest:{test}" for test in sorted(tests, key=lambda test: (any(s in test for s in slow), test)))


def reaches(file: Path, module: str) -> bool:
    """Whether a file of tests imports a module, however indirectly."""
    return any(module in imported(name) for name in names_of(file))


@cache
def digest_of(module: str) -> str:
    """Of a rule's text, of the laws that it is held to and of the sample of its mistakes."""
    return digest(mutants_of_rules.digest_of(module), *("\n".join(mutant.key()) for mutant in sample(module)))


def subjects() -> list[str]:
    """Every file of every chain."""
    return sorted(texts(CHAINS))


RECORD = Committed(PROOFS / "own_tests.json", digest_of, COMMAND, subjects)


def status(tests: Sequence[str], chains: Sequence[str]) -> str:
    """One line on a claim with these tests of its own, about the rules of these chains; "" where it has neither."""
    if not tests or not chains:
        return ""
    seen = total = 0
    for module in texts(chains):
        asked = RECORD.fresh(module)
        if asked is None or not {*tests} <= {*asked["tests"]}:
            return f"stale: the claim's own tests have not been run against mistakes in {module}"
        seen += sum(bool({*tests} & {*red}) for red in asked["seen"])
        total += len(asked["seen"])
    return (
        f"{'its own tests see' if seen else 'blind: its own tests see'} {seen} of {total} sampled mistakes in its rules"
    )
