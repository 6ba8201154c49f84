"""What is going on, on stderr: a bar after two seconds where that is a terminal, else a plain line every five."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE_S = 2.0  # work that ends sooner shows no bar
LINE_S = 5.0  # without a terminal nothing stays silent for longer
Tell = Callable[..., None]  # (what is going on, how much of it is done, where that is known)


class Progress:
    """Text of any origin is shown as it is, never read as markup. A context manager; `total` steps where known."""

    def __init__(self, title: str = "", total: int = 0) -> None:
        self.title, self.total, self.done = title, total, 0
        self._what, self._begun = "", time.monotonic()
        self._said = self._begun
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._bar: Bar | None = None
        self._thread = threading.Thread(target=self._keep_talking, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if self._bar is not None:
            self._bar.stop()

    def at(self, what: str, share: float | None = None) -> None:
        """Say what is going on now, and how much of it is done where that is known."""
        self._what = what
        if self._bar is not None:
            if share is None and self.total:
                share = self.done / self.total
            shown = " ".join(filter(None, (self._counted(), what))).replace("[", r"\[")
            self._bar.update(self._bar.task_ids[0], description=shown, total=share and 1.0, completed=share)

    def finish(self, line: str) -> None:
        """A step is over: its line, above the bar where there is one."""
        self.done += 1
        self._print(f"{self._counted()} {line}")
        self.at(self._what)

    def _counted(self) -> str:
        return f"[{self.done}/{self.total}]" if self.total else self.title

    def _print(self, line: str) -> None:
        with self._lock:
            self._said = time.monotonic()
            if self._bar is not None:
                self._bar.console.print(line, markup=False, highlight=False)
            else:
                print(line, file=sys.stderr, flush=True)

    def _keep_talking(self) -> None:
        if sys.stderr.isatty():
            if not self._ended.wait(PATIENCE_S):
                self._show_bar()
            return
        while not self._ended.wait(max(0.01, self._said + LINE_S - time.monotonic())):
            if time.monotonic() < self._said + LINE_S:
                continue
            if self._what:
                seconds = f"{time.monotonic() - self._begun:.0f} s"
                self._print(" ".join(filter(None, (self._counted(), seconds, self._what))))
            else:  # nothing to be said of
                self._said = time.monotonic()

    def _show_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = SpinnerColumn(), BarColumn(bar_width=24), TimeElapsedColumn(), TextColumn("{task.description}")
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.add_task("", total=None)
        bar.start()
        self._bar = bar
        self.at(self._what)


@contextmanager
def progress() -> Iterator[Tell]:
    """Yields `tell(what, share)`."""
    with Progress() as shown:
        yield shown.at
