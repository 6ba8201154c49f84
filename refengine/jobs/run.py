"""Jobs, a place to run them, and the loop that gives them out and counts every result once.

A job is a function without arguments that answers the same wherever and however often it runs. So a worker that dies,
killed, out of memory or gone with its machine, costs time and nothing else: its job is begun again, and whichever
answer comes first is the one that counts. A job that loses MAX_DEATHS workers kills them, and is named; one that raises
is named at once and not begun again.
"""

import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

MAX_DEATHS = 4  # of workers at one job


@dataclass(frozen=True)
class Job:
    """One piece of work.

    name   unique among the jobs that run together
    call   is pickled, and so is what it returns
    place  jobs of one place run one after the other, where it can be in one process, because they share what it
           remembers: loaded networks, a fork server; "" is a place of its own for each
    """

    name: str
    call: Callable[[], Any]
    place: str = ""


@dataclass(frozen=True)
class Ended:
    """How a job ended: with a result, with what it raised, or without an answer (`died` says how its worker ended)."""

    name: str
    result: Any = None
    seconds: float = 0.0
    raised: BaseException | None = None
    died: str = ""


class Workers(Protocol):
    """A place where jobs run."""

    @property
    def size(self) -> int:
        """How many jobs run at once."""
        ...

    def begin(self, job: Job) -> None:
        """Give out a job. No more than `size` run at a time."""
        ...

    def ended(self) -> Iterable[Ended]:
        """What has ended; waits until something has."""
        ...

    def close(self) -> None:
        """End whatever still runs. Safe to call twice."""
        ...


class Here:
    """This process, one job after the other."""

    size = 1

    def begin(self, job: Job) -> None:
        self._job = job

    def ended(self) -> list[Ended]:
        return [answered(self._job)]

    def close(self) -> None:
        pass


def run(
    jobs: Sequence[Job], workers: Workers, begun: Callable[[str], None] = lambda name: None
) -> Iterator[tuple[Job, Any, float]]:
    """Every job with its result and its seconds, in the order in which they end; places begin in their order.

    Raises what a job raises, with a note that names it, and RuntimeError for one that loses MAX_DEATHS workers. The
    workers are closed at the end, however it comes.
    """
    places: dict[str, deque[Job]] = {}
    for job in jobs:
        places.setdefault(job.place or f"\0{job.name}", deque()).append(job)
    pending, busy, deaths = deque(places.values()), dict[str, deque[Job]](), Counter[str]()
    try:
        while pending or busy:
            while pending and len(busy) < workers.size:
                place = pending.popleft()
                busy[place[0].name] = place
                begun(place[0].name)
                workers.begin(place[0])
            for end in workers.ended():
                if (going := busy.pop(end.name, None)) is None:
                    continue  # a second answer to a job that is over
                if end.raised is not None:
                    end.raised.add_note(f"in {end.name!r}")
                    raise end.raised
                if end.died:
                    deaths[end.name] += 1
                    if deaths[end.name] == MAX_DEATHS:
                        raise RuntimeError(f"{end.name}: {end.died}; it has lost {MAX_DEATHS} of them")
                else:
                    yield going.popleft(), end.result, end.seconds
                if going:
                    pending.appendleft(going)
    finally:
        workers.close()


def answered(job: Job) -> Ended:
    """Do the job here and now."""
    started = time.monotonic()
    try:
        result = job.call()
    except Exception as error:  # of any kind: it is raised where the jobs are waited for
        return Ended(job.name, raised=error)
    return Ended(job.name, result, time.monotonic() - started)


def portable(end: Ended) -> bytes:
    """An answer for another process, which can read it: not every result and not every exception can be pickled."""
    try:
        data = pickle.dumps(end)
        pickle.loads(data)
    except Exception as error:
        what = "what it raised" if end.raised is not None else "its result"
        why = RuntimeError(f"{what} cannot be sent: {end.raised or type(end.result)!r} ({error})")
        return pickle.dumps(Ended(end.name, raised=why))
    return data
