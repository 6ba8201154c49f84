"""Jobs on edited source: which checks can see an edit, and several jobs at a time, each in a child of its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never

from refengine.audit.sandbox.child import Child
from refengine.bugs.checks import CHECKS
from refengine.jobs.cluster import Cluster
from refengine.jobs.processes import Threads
from refengine.jobs.run import Job as Work
from refengine.jobs.run import run
from refengine.source_edits.imports import file_of, imported, names_of
from refengine.source_tree import PACKAGE, ROOT

Outcome: TypeAlias = Literal["holds", "violated", "crashed", "hung"]
# Imported once, by the fork server of these children.
PRELOAD = (
    *("torch", "transformers.models.llama.modeling_llama", "transformers.models.mistral.modeling_mistral"),
    *("pytest", "hypothesis"),
)
MEMORY_GIB = 6  # of one job: an endless list ends in MemoryError
SILENCE_SECONDS = 60.0  # beyond ten times its processor time, for a check that sleeps
MAX_CRASHES = 3


@dataclass(frozen=True)
class Job:
    """Edited modules with their whole texts, and the checks to run on them. `first`: end at the first violated one."""

    name: str
    sources: dict[str, str]
    checks: tuple[str, ...]
    first: bool = False
    seconds: float = 30.0


@dataclass(frozen=True)
class Answer:
    """What one check said about one job."""

    check: str
    outcome: Outcome
    detail: str = ""
    witness: dict[str, Any] = field(default_factory=dict)
    tv: str | None = None


def checks_that_load(modules: Sequence[str]) -> tuple[str, ...]:
    """The checks that import any of these modules, however indirectly. No other can see an edit of them."""
    return tuple(check for check in CHECKS if not loaded_by(check).isdisjoint(modules))


@cache
def loaded_by(check: str) -> frozenset[str]:
    """The modules of this package that a check imports, however indirectly."""
    module = check.partition(":")[0]
    if module != "pytest":
        return imported(f"refengine.bugs.checks.{module}")
    return frozenset().union(*(imported(found) for found in names_of(source_of(check))))


def source_of(check: str) -> Path:
    """The file in which a check is written."""
    module, _, name = check.partition(":")
    return ROOT / name.partition("::")[0] if module == "pytest" else file_of(f"refengine.bugs.checks.{module}")


def run_jobs(
    jobs: Sequence[Job], at_once: int = 2, done: Callable[[Job], None] = lambda job: None, cluster: str = ""
) -> Iterator[list[Answer]]:
    """The answers of every job, in the order of the jobs, each in a child of its own; `done` is called as each ends.

    cluster  the address of one (jobs/cluster.py), on whose machines the children then are
    """
    work = [Work(f"{number} {job.name}", partial(_every_answer, job)) for number, job in enumerate(jobs)]
    number_of = {one.name: number for number, one in enumerate(work)}
    ended: dict[int, list[Answer]] = {}
    told = 0
    for one, answers, _ in run(work, Cluster(cluster, at_once) if cluster else Threads(at_once)):
        ended[number_of[one.name]] = answers
        done(jobs[number_of[one.name]])
        while told in ended:
            yield ended.pop(told)
            told += 1


def _every_answer(job: Job) -> list[Answer]:
    return list(_answers(job))


def _answers(job: Job) -> Iterator[Answer]:
    """Check by check, until one hangs or kills the process; with `first`, until one is violated or three crash."""
    silence, crashes = SILENCE_SECONDS + 10 * job.seconds, 0
    with Child("refengine.bugs.process.job:make", str(PACKAGE.parent), preload=PRELOAD, memory_gib=MEMORY_GIB) as child:
        installed = child.ask({"sources": job.sources}, silence)
        if not installed.ok:
            raise RuntimeError(f"the sources of {job.name} cannot be installed: {installed.message}")
        for check in job.checks:
            reply = child.ask({"check": check, "seconds": job.seconds}, silence)
            match reply.kind:
                case "result":
                    answer = Answer(check, **reply.value)
                case "hang":
                    answer = Answer(check, "hung", "no answer")
                case "killed":
                    answer = Answer(check, "crashed", "the process died")
                case "raised" | "adapter":
                    answer = Answer(check, "crashed", reply.message)
                case _:
                    assert_never(reply.kind)
            yield answer
            crashes += answer.outcome == "crashed"
            if reply.kind in ("hang", "killed") or answer.outcome == "hung":
                return
            if job.first and (answer.outcome == "violated" or crashes == MAX_CRASHES):
                return
