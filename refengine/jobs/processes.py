"""One machine: processes that are forks of one interpreter, or threads for jobs that have processes of their own."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from pickle import loads

from refengine.jobs.run import Ended, Job, answered, portable


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """`size` processes. One that dies is replaced. preload: modules that are imported once, for all of them."""

    def __init__(self, size: int, preload: Sequence[str] = ()) -> None:
        self.size, self._start = size, multiprocessing.get_context("forkserver")
        self._start.set_forkserver_preload(list(preload))
        self._idle = [_Worker(self._start) for _ in range(size)]
        self._busy: dict[Connection, _Worker] = {}

    def begin(self, job: Job) -> None:
        same = [worker for worker in self._idle if worker.place == job.place]
        worker = (same or self._idle)[0]
        self._idle.remove(worker)
        if not worker.took(job):  # it was killed while it had nothing to do
            worker.close()
            worker = _Worker(self._start)
            worker.took(job)
        self._busy[worker.line] = worker

    def ended(self) -> Iterator[Ended]:
        ready = wait(list(self._busy))
        for line in [line for line in self._busy if line in ready]:
            worker = self._busy.pop(line)
            end = worker.answer()
            if end.died:
                worker.close()
                worker = _Worker(self._start)
            self._idle.append(worker)
            yield end

    def pids(self) -> list[int]:
        """Of the processes that are there now."""
        return [worker.process.pid or 0 for worker in (*self._idle, *self._busy.values())]

    def close(self) -> None:
        for worker in (*self._idle, *self._busy.values()):
            worker.close()
        self._idle, self._busy = [], {}


class _Worker:
    """A process, and the line to it."""

    def __init__(self, start: ForkServerContext) -> None:
        self.line, theirs = start.Pipe()
        self.process = start.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.place = ""

    def took(self, job: Job) -> bool:
        self.job, self.place = job, job.place
        try:
            self.line.send(job)
        except OSError:
            return False
        return True

    def answer(self) -> Ended:
        """What it says of its job. A line that ends in the middle of an answer has brought none."""
        try:
            end = loads(self.line.recv_bytes())
        except (EOFError, OSError):  # closed, or in the middle of an answer
            self.process.join()
            return Ended(self.job.name, died=f"its process ended with code {self.process.exitcode}")
        assert isinstance(end, Ended)
        return end

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.line.close()


def _work(line: Connection) -> None:
    """Jobs, until the line ends."""
    settle()
    while True:
        try:
            job = line.recv()
        except EOFError:
            return
        line.send_bytes(portable(answered(job)))


def settle() -> None:
    """What the bytes of a result could depend on, the same in every worker."""
    import torch

    torch.set_num_threads(1)  # sums in one order on every machine; tiny networks are faster so, too


class Threads:
    """`size` threads, for jobs whose work is done by processes of their own: those do not die unnoticed."""

    def __init__(self, size: int) -> None:
        self.size, self._pool = size, ThreadPoolExecutor(size)
        self._busy: set[Future[Ended]] = set()

    def begin(self, job: Job) -> None:
        self._busy.add(self._pool.submit(answered, job))

    def ended(self) -> Iterable[Ended]:
        done, self._busy = wait_for(self._busy, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
