"""Steps of a report: each makes findings, in processes side by side, and is in the journal as soon as it has ended."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from refengine.jobs.campaign import campaign
from refengine.jobs.options import workers
from refengine.jobs.processes import cores
from refengine.jobs.run import Job, Workers, run
from refengine.report.finding import Finding
from refengine.report.journal import Journal, Line
from refengine.report.step import Step

MAX_PROCESSES = 4  # each holds half a gigabyte of libraries


Performed: TypeAlias = tuple[list[Finding], str]  # the findings, and how they came about where that is to be said
Perform: TypeAlias = Callable[[Step], Performed]


def perform(step: Step) -> Performed:
    """The findings of a step, made now."""
    return list(step.run()), ""


def run_steps(
    steps: Sequence[Step],
    journal: Journal,
    perform: Perform = perform,
    *,
    processes: int | None = None,
    preload: Sequence[str] = (),
) -> list[Line]:
    """Run every step that the journal does not hold, and return all of them in the order of the steps.

    An exception in a step ends the run and leaves the finished ones in the journal. Raises ValueError, before anything
    runs, for a name that occurs twice. `preload`: modules that every process needs.
    """
    todo = [step for step in steps if journal.finished(step.name) is None]
    chosen = workers_for(todo, processes, "", preload)
    return campaign(jobs_of(steps, perform), chosen, journal, title="report", result=lambda made: made, told=_told)


def _told(line: Line) -> str:
    """What a line of progress says: the verdicts on third parties, the number of the others; and how it came about."""
    verdicts = [finding.verdict for finding in line.made if finding.role == "subject"]
    said = ", ".join(verdicts) or f"{len(line.made)} finding{'s' * (len(line.made) != 1)}"
    return f"{said}, {line.how or f'{line.seconds:.1f} s'}"


def played(
    steps: Sequence[Step],
    perform: Perform = perform,
    *,
    processes: int | None = None,
    cluster: str = "",
    preload: Sequence[str] = (),
    begun: Callable[[str], None] = lambda name: None,
) -> Iterator[tuple[Step, Performed, float]]:
    """Every step with what came of it and its seconds, in the order in which they end; places begin in their order.

    What is found does not depend on where and in how many processes it is. An exception in a step is raised here.
    """
    named = {step.name: step for step in steps}
    chosen = workers_for(steps, processes, cluster, preload)
    for job, performed, seconds in run(jobs_of(steps, perform), chosen, begun):
        yield named[job.name], performed, seconds


def jobs_of(steps: Sequence[Step], perform: Perform) -> list[Job]:
    return [Job(step.name, partial(perform, step), step.place or "no place") for step in steps]


def workers_for(steps: Sequence[Step], processes: int | None, cluster: str, preload: Sequence[str]) -> Workers:
    """Here no more processes than places. With one, everything runs in this one."""
    if not cluster:
        processes = min(processes or cores(), MAX_PROCESSES, len({step.place for step in steps})) or 1
    return workers(processes, cluster, preload)
