"""The battery on every core. What comes out is what one process would find, in the same order.

Steps of one place run one after the other in one process, because they share what is remembered there: networks that
are loaded, passes, plain rows. Which process that is, and beside which other place, changes nothing that is found.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import torch

from refengine.report.finding import Finding
from refengine.selfcheck.drafters.battery import Step

MOST = 4  # processes, each of which holds half a gigabyte of libraries


def played(steps: Sequence[Step]) -> Iterator[tuple[Step, list[Finding]]]:
    """Every step with what it found, in the order of the steps. The place named last, the longest, begins first.

    An exception in a step is raised here, when its turn comes.
    """
    *before, last = dict.fromkeys(step.place for step in steps)
    count = min(os.cpu_count() or 1, MOST, len(before) + 1)
    if count < 2:
        yield from ((step, step.run()) for step in steps)
        return
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(["refengine.selfcheck.drafters.battery"])  # imported once, for all of them
    pool = ProcessPoolExecutor(count, start, _one_thread)
    try:
        found = {place: pool.submit(_run, [step for step in steps if step.place == place]) for place in (last, *before)}
        for step in steps:
            yield step, found[step.place].result().pop(0)
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    torch.set_num_threads(1)


def _run(steps: Sequence[Step]) -> list[list[Finding]]:
    return [step.run() for step in steps]
