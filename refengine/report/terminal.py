"""A line on stderr that says what is going on, for work that takes longer than two seconds and only on a terminal."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PATIENCE_S = 2.0
Tell = Callable[..., None]  # (what is going on, how much of it is done, where that is known)


@contextmanager
def progress() -> Iterator[Tell]:
    """Yields `tell(what, share)`; text of any origin is shown as it is, never read as markup."""
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(), BarColumn(bar_width=24), TimeElapsedColumn(), TextColumn("{task.description}"),
        console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task("", total=None)

    def tell(what: str, share: float | None = None) -> None:
        bar.update(task, description=what.replace("[", r"\["), total=None if share is None else 1.0, completed=share)

    timer = threading.Timer(PATIENCE_S, bar.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield tell
    finally:
        if console.is_terminal:
            timer.cancel()
            timer.join()  # a timer that has just fired must not start the bar after this stop
            bar.stop()
