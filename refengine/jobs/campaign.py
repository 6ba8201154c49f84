"""A campaign: jobs whose results are kept as they end, in a journal that a later run continues, and add up.

Every result stands in the journal once, under the name of its job, and what comes out is in the order of the jobs. So
it has the same bytes whichever workers ran what, how often one died, and where a run was cut off and taken up again.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from refengine.errors import BadInput
from refengine.jobs.run import Job, Workers, run
from refengine.report.canonical import canonical
from refengine.report.journal import Journal, Line, sources
from refengine.report.report import environment
from refengine.report.terminal import Progress

Counts = dict[str, list[int]]  # by name: how often each of some outcomes was seen


def campaign(
    jobs: Sequence[Job],
    workers: Workers,
    journal: Journal | None = None,
    *,
    title: str = "campaign",
    result: Callable[[Any], tuple[Any, str]] = lambda made: (made, ""),
    told: Callable[[Line], str] = lambda line: line.how or f"{line.seconds:.1f} s",
) -> list[Line]:
    """Run every job that the journal does not hold; all of them, in their order.

    An exception in a job ends the run and leaves the finished ones in the journal. Raises ValueError, before anything
    runs, for a name that occurs twice. result: of what a job answers, what is kept and how it came about, where that is
    to be said. told: what a line of progress says.
    """
    names = [job.name for job in jobs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        workers.close()
        raise ValueError(f"two steps are called {twice!r}")
    lines = {name: line for name in names if journal and (line := journal.finished(name))}
    with Progress(title, len(jobs)) as shown:
        shown.at("processes are started")
        for line in lines.values():
            shown.finish(f"{line.step}: {told(line)}, from the journal")
        for job, answer, seconds in run([job for job in jobs if job.name not in lines], workers, shown.at):
            made, how = result(answer)
            line = Line(run="", step=job.name, seconds=round(seconds, 3), made=made, how=how)
            lines[job.name] = journal.append(line) if journal else line
            shown.finish(f"{job.name}: {told(line)}")
    return [lines[name] for name in names]


def journal_of(path: Path, settings: Mapping[str, Any], *, fresh: bool = False, made: Any = Counts) -> Journal:
    """The journal of a campaign with these settings, by these sources and versions. made: the type of a result.

    Raises BadInput where the file holds another campaign, and says what is otherwise there.
    """
    own = {**settings, "sources": sources(), **environment()}
    journal = Journal(path, canonical(own, indent=None).strip(), fresh=fresh, made=made)
    if journal.other:
        journal.close()
        there = json.loads(journal.other) if journal.other.startswith("{") else {}
        differing = [key for key in {**own, **there} if own.get(key) != there.get(key)]
        what = ", ".join(f"{key} {there.get(key)} there, {own.get(key)} here" for key in differing[:2])
        raise BadInput(f"{path} is the journal of another campaign ({what}); name another file, or --fresh starts over")
    return journal


def merged(every: Iterable[Mapping[str, Sequence[int]]]) -> Counts:
    """The sums of counts, by name and place. It is associative and commutative: integers of any size are added."""
    total: Counts = {}
    for counts in every:
        for name, values in counts.items():
            sums = total.setdefault(name, [0] * len(values))
            if len(sums) != len(values):
                raise ValueError(f"{name!r} has {len(values)} counts in one shard and {len(sums)} in another")
            sums[:] = [a + b for a, b in zip(sums, values, strict=True)]
    return dict(sorted(total.items()))
