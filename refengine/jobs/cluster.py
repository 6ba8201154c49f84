"""Many machines: each job is a task of a Ray cluster, which places it (the optional extra `refengine[ray]`).

Every machine has this package installed, as the same sources: a task that runs others says so instead of an answer.
Ray itself begins nothing again; what is lost is begun again by the loop of `run.py`, here as on one machine.
"""

import socket
from collections.abc import Iterator
from functools import cache
from pickle import loads
from typing import Any

from refengine.errors import BadInput
from refengine.jobs.processes import settle
from refengine.jobs.run import Ended, Job, answered, portable
from refengine.report.journal import sources

LOCAL = "local"
_own_sources = cache(sources)  # as they were when this process began


class Cluster:
    """The cluster at an address: `auto` (the one that this machine is part of), `HOST:PORT`, `ray://HOST:PORT`, or
    `local`, which starts one on this machine and ends it. size: jobs at once; by default one for each CPU.

    Raises BadInput where Ray is not installed or nothing answers at the address.
    """

    def __init__(self, address: str, size: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise BadInput("a cluster needs Ray: pip install 'refengine[ray]'") from None
        self._ray: Any = ray
        options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "error"}
        if address == LOCAL:
            options |= {"num_cpus": size, "include_dashboard": False}
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            ray.shutdown()
            why = str(error).strip().splitlines()[0]
            raise BadInput(f"no Ray cluster at {address!r} ({why}); `ray start --head` makes one") from None
        self.size = size or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._task = ray.remote(num_cpus=1, max_retries=0)(_task)
        self._busy: dict[Any, Job] = {}

    def begin(self, job: Job) -> None:
        self._busy[self._task.remote(job, _own_sources())] = job

    def ended(self) -> Iterator[Ended]:
        done, _ = self._ray.wait(list(self._busy), num_returns=1)
        for future in done:
            job = self._busy.pop(future)
            try:
                end = loads(self._ray.get(future))
            except self._ray.exceptions.RayTaskError as error:  # it could not be begun there: no package, no function
                end = Ended(job.name, raised=RuntimeError(str(error).strip().splitlines()[-1]))
            except self._ray.exceptions.RayError as error:  # the worker, its machine, or the answer is gone
                end = Ended(job.name, died=f"its worker is gone ({type(error).__name__})")
            yield end

    def close(self) -> None:
        for future in self._busy:
            self._ray.cancel(future, force=True)
        self._busy = {}
        self._ray.shutdown()


def _task(job: Job, wanted: str) -> bytes:
    """A job in a worker of the cluster."""
    if _own_sources() != wanted:
        return portable(Ended(job.name, raised=BadInput(f"{socket.gethostname()} has another refengine installed")))
    settle()
    return portable(answered(job))
