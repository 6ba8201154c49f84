"""Steps of a report: each makes findings, in processes side by side, and is in the journal as soon as it has ended."""

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeAlias

from refengine.report.finding import Finding
from refengine.report.journal import Journal, Line
from refengine.report.step import Step
from refengine.report.terminal import Progress

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
    names = [step.name for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two steps are called {name!r}")
    lines = {name: line for name in names if (line := journal.finished(name))}
    with Progress("report", len(steps)) as shown:
        shown.at("processes are started")
        for line in lines.values():
            shown.finish(f"{line.step}: {_told(line)}, from the journal")
        todo = [step for step in steps if step.name not in lines]
        ended = played(todo, perform, processes=processes, preload=preload, begun=shown.at)
        for step, (findings, how), seconds in ended:
            line = lines[step.name] = journal.append(step.name, findings, seconds, how)
            shown.finish(f"{step.name}: {_told(line)}, {how or f'{seconds:.1f} s'}")
    return [lines[name] for name in names]


def _told(line: Line) -> str:
    """What a line of progress says: the verdicts on third parties, the number of the others."""
    verdicts = [finding.verdict for finding in line.findings if finding.role == "subject"]
    return ", ".join(verdicts) or f"{len(line.findings)} finding{'s' * (len(line.findings) != 1)}"


# --- processes -------------------------------------------------------------------------------------------------------


def played(
    steps: Sequence[Step],
    perform: Perform = perform,
    *,
    processes: int | None = None,
    preload: Sequence[str] = (),
    begun: Callable[[str], None] = lambda name: None,
) -> Iterator[tuple[Step, Performed, float]]:
    """Every step with what came of it and its seconds, in the order in which they end; places begin in their order.

    What is found does not depend on the number of processes. An exception in a step is raised here. With one process,
    everything runs in this one.
    """
    places: dict[str, deque[Step]] = {}
    for step in steps:
        places.setdefault(step.place, deque()).append(step)
    count = min(processes or os.cpu_count() or 1, MAX_PROCESSES, len(places))
    if count < 2:
        for step in (step for place in places.values() for step in place):
            begun(step.name)
            yield step, *_timed(step, perform)
        return
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(list(preload))  # imported once, for all of them
    pending, workers = deque(places.values()), [_Worker(start, perform) for _ in range(count)]
    try:
        busy = {worker.line: worker for worker in workers if worker.take(pending, begun)}
        while busy:
            for line in wait(list(busy)):
                worker = busy[line]  # type: ignore[index]
                yield worker.step, *worker.answer()
                if not worker.take(pending, begun):
                    del busy[line]  # type: ignore[arg-type]
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()


class _Worker:
    """A process that works through one place after the other."""

    process: BaseProcess

    def __init__(self, start: multiprocessing.context.ForkServerContext, perform: Perform) -> None:
        self.line, theirs = start.Pipe()
        self.process = start.Process(target=_work, args=(theirs, perform), daemon=True)
        self.process.start()
        theirs.close()
        self.place: deque[Step] = deque()

    def take(self, pending: deque[deque[Step]], begun: Callable[[str], None]) -> bool:
        """Begin the next step of this place, or of the next one that nobody has taken; False where there is none."""
        if not self.place and not pending:
            return False
        self.place = self.place or pending.popleft()
        self.step = self.place.popleft()
        begun(self.step.name)
        self.line.send(self.step)
        return True

    def answer(self) -> tuple[Performed, float]:
        try:
            answer = self.line.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise RuntimeError(f"{self.step.name}: its process ended with code {self.process.exitcode}") from None
        if isinstance(answer, BaseException):
            raise answer
        performed, seconds = answer
        return performed, seconds


def _work(line: Connection, perform: Perform) -> None:
    import torch

    torch.set_num_threads(1)  # sums in one order on every machine; tiny networks are faster so, too
    while True:
        try:
            step = line.recv()
        except EOFError:
            return
        try:
            line.send(_timed(step, perform))
        except Exception as error:  # of any kind: it is raised where the steps are waited for
            error.add_note(f"in the step {step.name!r}")
            line.send(error)


def _timed(step: Step, perform: Perform) -> tuple[Performed, float]:
    started = time.monotonic()
    return perform(step), time.monotonic() - started
