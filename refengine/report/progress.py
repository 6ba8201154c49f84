"""Running the sections of a report one after the other, with their progress on stderr and their results journalled."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from refengine.report.finding import Finding
from refengine.report.journal import Journal, Line

PATIENCE_S = 2.0  # a job that ends sooner shows no bar


@dataclass(frozen=True)
class Section:
    """A part of a report: a unique name, and a function that makes its findings (a list, or one after the other).

    A section is the unit of the journal: an interrupted one starts again from its beginning.
    """

    name: str
    function: Callable[[], Iterable[Finding]]


class Display:
    """A bar on stderr after two seconds where stderr is a terminal, otherwise one plain line per finished step."""

    def __init__(self, total: int, title: str) -> None:
        self._console = Console(file=sys.stderr)
        self._total, self._done = total, 0
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[title]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.description}"),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total, title=title)
        self._timer = threading.Timer(PATIENCE_S, self._progress.start)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._timer.cancel()
            self._timer.join()  # a timer that has just fired must not start the bar after this stop
            self._progress.stop()

    def at(self, step: str) -> None:
        """Say what is running now; text of any origin, never read as markup."""
        self._progress.update(self._task, description=step.replace("[", r"\["))

    def finish(self, step: str) -> None:
        """A step is over."""
        self._done += 1
        self._progress.update(self._task, completed=self._done)
        if not self._console.is_terminal:
            print(f"[{self._done}/{self._total}] {step}", file=sys.stderr, flush=True)


def run_sections(sections: Sequence[Section], journal: Journal, *, title: str = "report") -> list[Line]:
    """Run every section that the journal does not hold, in order, and return all of them in that order.

    An exception in a section ends the run and leaves the finished ones in the journal.
    Raises ValueError, before anything runs, for a name that occurs twice.
    """
    names = [section.name for section in sections]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two sections are called {name!r}")
    lines = []
    with Display(len(sections), title) as display:
        for section in sections:
            line = journal.finished(section.name)
            resumed = line is not None
            if line is None:
                line = journal.append(section.name, *_run(section, display))
            lines.append(line)
            how = "from the journal" if resumed else f"{line.seconds:.1f} s"
            display.finish(f"{section.name}: {len(line.findings)} findings, {how}")
    return lines


def _run(section: Section, display: Display) -> tuple[list[Finding], float]:
    started = time.monotonic()
    findings = []
    display.at(section.name)
    for finding in section.function():
        findings.append(finding)
        display.at(f"{section.name} ({len(findings)})")
    return findings, time.monotonic() - started
