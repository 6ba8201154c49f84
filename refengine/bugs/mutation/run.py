"""The mutation run: every small mistake in the core, each loaded in a process of its own and held to the checks.

`python -m refengine.bugs.mutation.run` mutates every file of `exact` and `engine` and the decode loop, runs the general
checks that load the file, on what is left the core's property tests that import it, and writes `mutation.json` after
every file: a run that was interrupted goes on where it was, and a file that has not changed is not run again (`--again`
runs it). What survives is explained in `survivors.toml`: the run fails on a survivor without an explanation, and on an
explanation without a survivor.

Outcomes of a mutant: `killed` by a claim that is false; `crashed` or `hung` where no claim was false but some check
could not run to its end (told apart: a crash is no detection by name); `survived`.
"""

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from refengine.bugs.mutation.mutants import Mutant, mutants
from refengine.bugs.mutation.record import LETTERS, RECORD, Record, doubts, explained, subjects, unchanged
from refengine.bugs.process.pool import Answer, Job, checks_that_load, loaded_by, run_jobs
from refengine.jobs.options import add_options

SECONDS = 12.0  # processor time of one check; the longest takes two seconds on unedited source, five on a busy machine
TEST_SECONDS = 90.0  # of one test file; the laws take a minute on unedited source, the others fifteen seconds at most
TESTED = "pytest:properties/exact_and_engine/test_"
ORDER = (  # the beginnings of their names
    *(f"{TESTED}{name}" for name in ("exact_chance", "exact", "policy")),
    *("rounds:law", "rounds", "loops", TESTED, "twins:law", "numerics", "twins", "large"),
    *("pytest", "decoding", "network"),
)
# The tests of the core that take longer than a check may, and those of what no check loads.
TESTS = (
    "properties/exact_and_engine/test_exact_rules.py",
    "properties/exact_and_engine/test_engine_laws.py",
    "properties/exact_and_engine/test_vectors.py",
    "properties/exact_and_engine/test_merged_runs.py",
    "properties/exact_and_engine/test_merged_laws.py",
    "properties/decoder/test_state.py",
    "properties/decoder/test_ends.py",
    "properties/decoder/test_batch.py",
    "properties/exact_and_engine/test_laws.py",
)


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: its outcome, and the check that decided it."""

    mutant: Mutant
    outcome: str
    by: str


def fate(mutant: Mutant, answers: Sequence[Answer]) -> Fate:
    """The first false claim decides; failing that, the first crash or hang."""
    for outcome, word in (("violated", "killed"), ("hung", "hung"), ("crashed", "crashed")):
        for answer in answers:
            if answer.outcome == outcome:
                return Fate(mutant, word, answer.check)
    return Fate(mutant, "survived", "")


def run(chosen: Sequence[Mutant], at_once: int = 2, cluster: str = "") -> list[Fate]:
    """The general checks on every mutant, then the property tests on those that stand without an explanation."""
    jobs = [job(m, concerned(m.module)) for m in chosen]
    fates = [fate(m, a) for m, a in zip(chosen, run_jobs(jobs, at_once, cluster=cluster), strict=True)]
    standing = [i for i, f in enumerate(fates) if f.outcome == "survived" and not explained(f.mutant.key())]
    tests = [
        dataclasses.replace(job(m, property_tests(m.module)), seconds=TEST_SECONDS)
        for m in (fates[i].mutant for i in standing)
    ]
    for i, later in zip(standing, run_jobs(tests, at_once, cluster=cluster), strict=True):
        fates[i] = fate(fates[i].mutant, later)
    return fates


def job(mutant: Mutant, checks: tuple[str, ...]) -> Job:
    return Job(f"{mutant.module}:{mutant.number}", {mutant.module: mutant.source}, checks, first=True, seconds=SECONDS)


@cache
def concerned(module: str) -> tuple[str, ...]:
    """The checks that load the module, cheap ones first; one fixed order, so that the result is reproducible."""
    return tuple(sorted(checks_that_load((module,)), key=lambda c: (rank(c), c)))


def rank(check: str) -> int:
    return next(place for place, name in enumerate(ORDER) if check.startswith(name))


@cache
def property_tests(module: str) -> tuple[str, ...]:
    """The slower test files of the core that load the module."""
    return tuple(f"pytest:{file}" for file in TESTS if module in loaded_by(f"pytest:{file}"))


def recorded(fates: Sequence[Fate]) -> Record:
    """What is written down of one file."""
    outcomes = "".join(LETTERS[f.outcome] for f in fates)
    kills = Counter(f.by for f in fates if f.outcome == "killed")
    return Record(outcomes, dict(sorted(kills.items())))


def survivors_again(module: str, record: Record, at_once: int = 2, cluster: str = "") -> Record:
    """The record with the survivors that nobody has explained run once more: what fell falls, as no check was taken."""
    doubtful = {
        i: mutant
        for i, (mutant, letter) in enumerate(zip(mutants(module), record.outcomes, strict=True))
        if letter == LETTERS["survived"] and not explained(mutant.key())
    }
    later = dict(zip(doubtful, run(list(doubtful.values()), at_once, cluster), strict=True))
    now = recorded(list(later.values()))
    outcomes = "".join(LETTERS[later[i].outcome] if i in later else old for i, old in enumerate(record.outcomes))
    return Record(outcomes, dict(sorted((Counter(record.kills) + Counter(now.kills)).items())))


def pending(modules: Sequence[str], again: bool) -> Iterator[str]:
    """The modules to be run, each line of progress included."""
    done = {} if again else unchanged()
    for number, module in enumerate(modules, 1):
        print(f"[{number}/{len(modules)}] {module}", end=" ", file=sys.stderr, flush=True)
        if module in done:
            print("is as it was", file=sys.stderr)
        else:
            yield module


def main() -> int:
    """Run what has changed, write it down file by file, print what is in doubt; exit code 1 where anything is."""
    parser = argparse.ArgumentParser(description="Mutate the core and list what survives.")
    parser.add_argument("modules", nargs="*", help="only these, for example refengine.exact.row (default: all)")
    parser.add_argument("--again", action="store_true", help="also files that have not changed since they were run")
    parser.add_argument("--survivors", action="store_true", help="of such files, what survived: tests were added since")
    add_options(parser)
    given = parser.parse_args()
    where = (given.workers or 2, given.cluster)
    chosen = given.modules or subjects()
    unknown = [m for m in chosen if m not in subjects()]
    if unknown:
        print(f"{unknown[0]} is not mutated: one of {', '.join(subjects())}", file=sys.stderr)
        return 2
    if given.survivors:
        for module, record in unchanged().items():
            if module in chosen and (lines := doubts({module: record})):
                print(module, len(lines), file=sys.stderr)
                RECORD.put(module, dataclasses.asdict(survivors_again(module, record, *where)))
        chosen = []
    for module in pending(chosen, given.again):
        fates = run(mutants(module), *where)
        RECORD.put(module, dataclasses.asdict(recorded(fates)))
        print(dict(Counter(f.outcome for f in fates)), file=sys.stderr)
    lines = doubts(unchanged())
    print("\n".join(lines) or "no survivor is unexplained, no explanation is stale or too wide")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
