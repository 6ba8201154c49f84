"""What the benchmarks of one command share: processor time in turns, a limit on it, and where it was measured."""

import json
import platform
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from refengine.files import write_atomic
from refengine.report.report import environment

TURNS = 5
LEAST_SECONDS = 0.05  # of processor time that are measured together: some kernels count it in steps of milliseconds


class OverTheLimit(Exception):
    """More processor time than was given."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise OverTheLimit after so much processor time of this process."""

    def over(number: int, frame: FrameType | None) -> None:
        raise OverTheLimit

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def processor_seconds(call: Callable[[], Any]) -> float:
    """Of one call, repeated until there is something to measure."""
    begun, count = time.process_time(), 0
    while time.process_time() - begun < LEAST_SECONDS:
        call()
        count += 1
    return (time.process_time() - begun) / count


def in_turns(calls: dict[Any, Callable[[], Any]], turns: int = TURNS) -> dict[Any, list[float]]:
    """Processor seconds of each call, the calls taking turns."""
    for call in calls.values():
        call()  # compiles, and touches every page
    found: dict[Any, list[float]] = {key: [] for key in calls}
    for _ in range(turns):
        for key, call in calls.items():
            found[key].append(processor_seconds(call))
    return found


def spread(ratios: list[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"ratio": statistics.median(ratios), "smallest": min(ratios), "largest": max(ratios)}


def keep(out: Path | None, found: dict[str, Any]) -> None:
    """Write what there is so far, with versions and device: a benchmark that is cut off keeps what it had."""
    if out:
        write_atomic(out, json.dumps({**where(), **found}, indent=1) + "\n")


def where() -> dict[str, Any]:
    """Versions and device."""
    cuda = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if cuda else platform.machine()
    return {"versions": environment(), "device": device, "threads": torch.get_num_threads()}
