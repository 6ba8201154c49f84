"""The runner of jobs: every result counts once, in the order of the jobs, whatever becomes of who works on them."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from os import kill
from pathlib import Path
from pickle import loads
from random import Random
from signal import SIGKILL
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.helpers.jobs import drawn, half_told, killing, named, plain_jobs, raising, shards, slowly, unreadable
from refengine.errors import BadInput
from refengine.jobs import cluster
from refengine.jobs.campaign import campaign, journal_of, merged
from refengine.jobs.cluster import Cluster
from refengine.jobs.processes import Processes, Threads
from refengine.jobs.run import MAX_DEATHS, Ended, Here, Job, Workers, answered, run
from refengine.report.canonical import canonical

try:
    import ray  # noqa: F401

    RAY = True
except ImportError:
    RAY = False
with_ray = pytest.mark.skipif(not RAY, reason="not tested: Ray is not installed (pip install 'refengine[ray]')")
# What Ray itself leaves open when it is imported and shut down.
quiet = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
PLACES: list[Any] = [
    pytest.param(partial(Processes, 10), id="ten processes"),
    # Each takes seconds to start.
    pytest.param(partial(Cluster, "local", 4), id="four of ray", marks=[with_ray, quiet]),
]
FEW: list[Any] = [
    pytest.param(partial(Processes, 2), id="processes"),
    pytest.param(partial(Cluster, "local", 2), id="ray", marks=[with_ray, quiet]),
]


def result(jobs: list[Job], workers: Workers) -> str:
    """The text of everything that a campaign answers: of every job, and the sum."""
    made = [line.made for line in campaign(jobs, workers)]
    return canonical([made, merged(made)])


class Hostile:
    """A place whose workers answer in any order, twice, late, or die: what comes is drawn."""

    def __init__(self, size: int, source: Random) -> None:
        self.size, self.source = size, source
        self.running: list[Job] = []
        self.told: list[Ended] = []
        self.deaths: Counter[str] = Counter()

    def begin(self, job: Job) -> None:
        assert len(self.running) < self.size
        self.running.append(job)

    def ended(self) -> Iterator[Ended]:
        if self.told and self.source.random() < 0.3:
            yield self.source.choice(self.told)  # once more
        job = self.running.pop(self.source.randrange(len(self.running)))
        if self.deaths[job.name] < MAX_DEATHS - 1 and self.source.random() < 0.4:
            self.deaths[job.name] += 1
            yield Ended(job.name, died="its process was killed")
        else:
            self.told.append(answered(job))
            yield self.told[-1]

    def close(self) -> None:
        self.running = []


@given(st.randoms(use_true_random=False), st.integers(1, 5), st.integers(0, 12))
def test_every_result_counts_once(source: Random, size: int, count: int) -> None:
    """Kills an answer that is counted twice, one that is lost with its worker, and an order that depends on who won."""
    jobs = [Job(f"job {n}", partial(dict, {"n": [n, 1]}), source.choice(["", "a", "b"])) for n in range(count)]
    lines = campaign(jobs, Hostile(size, source))
    assert [line.made["n"][0] for line in lines] == list(range(count))
    assert merged(line.made for line in lines) == ({"n": [count * (count - 1) // 2, count]} if count else {})


@pytest.mark.parametrize("size", [2, 3])
def test_the_bytes_of_one_process(size: int) -> None:
    """Kills coins that depend on the process that throws them, and a sum in the order of arrival."""
    assert result(plain_jobs(), Processes(size)) == result(plain_jobs(), Here()) == result(plain_jobs(), Threads(size))


@pytest.mark.parametrize("place", PLACES)
def test_three_workers_are_killed_at_random(place: Callable[[], Workers], tmp_path: Path) -> None:
    """Kills a result that is lost or counted twice with its worker, and a campaign that does not survive one."""
    jobs = [Job(named(lanes), partial(slowly, 0, lanes, str(tmp_path / f"{lanes.first}"))) for lanes in shards(40)]
    killed: list[int] = []

    def reaper() -> None:
        source = Random(7)
        while len(killed) < 3:
            begun = sorted(int(file.suffix[1:]) for file in tmp_path.iterdir())
            if left := [pid for pid in set(begun[-10:]) if pid not in killed]:
                killed.append(source.choice(sorted(left)))
                kill(killed[-1], SIGKILL)
            time.sleep(0.2)

    thread = threading.Thread(target=reaper)
    thread.start()
    found = result(jobs, place())
    thread.join()
    begun = Counter(file.stem for file in tmp_path.iterdir())
    assert sum(begun.values()) > len(jobs), "nobody was killed at work"
    assert found == result(plain_jobs(40), Here())


def test_a_worker_that_dies_in_the_middle_of_its_answer(tmp_path: Path) -> None:
    """Kills a shard that is lost, or counted twice, because its worker had finished it and not told it whole."""
    once = tmp_path / "once"
    jobs = [*plain_jobs(3), Job(named(shards(4)[3]), partial(half_told, 0, shards(4)[3], str(once)))]
    assert result(jobs, Processes(2)) == result(plain_jobs(4), Here())
    assert once.exists()


def test_a_worker_that_is_killed_while_it_waits() -> None:
    """Kills a job that is handed to the dead."""
    place = Processes(3)
    for pid in place.pids():
        kill(pid, SIGKILL)
    assert result(plain_jobs(4), place) == result(plain_jobs(4), Here())


RAISED = [
    pytest.param(killing, RuntimeError, f"bad: its (process|worker).*lost {MAX_DEATHS}", id="kills"),
    pytest.param(unreadable, RuntimeError, "what it raised cannot be sent", id="unreadable"),
]


@pytest.mark.parametrize(("call", "error", "says"), RAISED)
def test_a_job_that_cannot_be_done_is_named(call: Callable[[], None], error: type[Exception], says: str) -> None:
    """Kills a shard that is begun again for ever, and an exception that ends the parent where it is read."""
    with pytest.raises(error, match=says):
        list(run([*plain_jobs(2), Job("bad", call)], Processes(2)))


@pytest.mark.parametrize("place", [*FEW, pytest.param(Here, id="here")])
def test_what_raises_is_named_and_not_begun_again(place: Callable[[], Workers], tmp_path: Path) -> None:
    """Kills a mistake that is taken for a lost worker."""
    log = tmp_path / "log"
    with pytest.raises(ZeroDivisionError, match="nothing to divide by") as caught:
        list(run([Job("bad", partial(raising, str(log))), *plain_jobs(2)], place()))
    assert caught.value.__notes__ == ["in 'bad'"]
    assert log.read_text() == "once\n"


# --- the journal -----------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1))
def test_a_journal_that_was_cut_anywhere_is_gone_on_with(
    share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Kills a shard that is counted twice or left out because the journal ends in the middle of its line."""
    path, ran = tmp_path_factory.mktemp("cut") / "journal", list[str]()

    def counted(lanes: Any) -> dict[str, list[int]]:
        ran.append(named(lanes))
        return drawn(0, lanes)

    jobs = [Job(named(lanes), partial(counted, lanes)) for lanes in shards(5)]
    with journal_of(path, {"seed": 0}) as journal:
        whole = [line.made for line in campaign(jobs, Here(), journal)]
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    kept = path.read_bytes().count(b"\n")
    ran.clear()
    with journal_of(path, {"seed": 0}) as journal:
        assert [line.made for line in campaign(jobs, Here(), journal)] == whole
    assert ran == [job.name for job in jobs[kept:]]
    assert path.read_bytes().count(b"\n") == len(jobs)


def test_the_journal_of_another_campaign_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills counts of other settings, or of other sources, that are added to ours."""
    path = tmp_path / "journal"
    with journal_of(path, {"seed": 0}) as journal:
        campaign(plain_jobs(2), Here(), journal)
    with pytest.raises(BadInput, match=r"is the journal of another campaign \(seed 0 there, 1 here\).*--fresh"):
        journal_of(path, {"seed": 1})
    monkeypatch.setattr("refengine.jobs.campaign.sources", lambda: "others")
    with pytest.raises(BadInput, match=r"another campaign \(sources .* there, others here\)"):
        journal_of(path, {"seed": 0})
    with journal_of(path, {"seed": 1}, fresh=True) as journal:
        assert campaign(plain_jobs(2), Here(), journal)[0].made == drawn(0, shards(1)[0])
    path.write_text(path.read_text().replace('"tokens":[', '"tokens":["many",'))
    with pytest.raises(BadInput, match="is damaged at line 1"):
        journal_of(path, {"seed": 1})


# --- a cluster -------------------------------------------------------------------------------------------------------


def test_without_ray_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a traceback where an optional extra is missing."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"pip install 'refengine\[ray\]'"):
        Cluster("local")


@with_ray
@quiet
def test_where_no_cluster_answers_there_is_one_clear_line() -> None:
    """Kills a traceback of a hundred lines for a cluster that is not running."""
    with pytest.raises(BadInput, match="no Ray cluster at 'auto'"):
        Cluster("auto")


def test_a_machine_with_other_sources_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills counts that another version made."""
    monkeypatch.setattr(cluster, "_own_sources", lambda: "others")
    end = loads(cluster._task(plain_jobs(1)[0], "ours"))
    assert isinstance(end.raised, BadInput)
    assert "another refengine" in str(end.raised)
