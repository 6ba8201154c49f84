"""Jobs for the tests of the runner: what they do can be told from outside, and who does it can be killed."""

import os
import signal
import struct
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from refengine.jobs.ranges import Range, coins
from refengine.jobs.run import Job

ROW = [5.0, 1.0, 3.0, 7.0]
LANES = 1000


def drawn(seed: int, lanes: Range) -> dict[str, list[int]]:
    """How often each token of one row is chosen."""
    rows = torch.tensor([ROW]).expand(lanes.count, -1)
    tokens = coins(seed, lanes).choose(rows, ("emit", 0))
    return {"tokens": np.bincount(tokens.numpy(), minlength=len(ROW)).tolist()}


def slowly(seed: int, lanes: Range, begun: str) -> dict[str, list[int]]:
    """The same, in time for a signal: every run leaves a file that says which process it was in."""
    Path(f"{begun}.{os.getpid()}").touch()
    time.sleep(0.3)
    return drawn(seed, lanes)


def half_told(seed: int, lanes: Range, once: str) -> dict[str, list[int]]:
    """The first time its process dies when its work is done and half of its answer is on the line; then it answers."""
    counts = drawn(seed, lanes)
    if not Path(once).exists():
        Path(once).touch()
        frame: Any = sys._getframe()
        while "line" not in frame.f_locals:
            frame = frame.f_back
        os.write(frame.f_locals["line"].fileno(), struct.pack("!i", 100) + b"half of an answer")
        os.kill(os.getpid(), signal.SIGKILL)
    return counts


def killing() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raising(log: str) -> None:
    with Path(log).open("a") as file:
        file.write("once\n")
    raise ZeroDivisionError("nothing to divide by")


class Unreadable(Exception):
    """Pickled, and never read again: it wants two arguments and says that it had one."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


def unreadable() -> None:
    raise Unreadable("one", "two")


def shards(count: int) -> list[Range]:
    return [Range(n * LANES, LANES) for n in range(count)]


def named(lanes: Range) -> str:
    return f"lanes {lanes.first}"


def plain_jobs(count: int = 12) -> list[Job]:
    return [Job(named(lanes), partial(drawn, 0, lanes)) for lanes in shards(count)]
