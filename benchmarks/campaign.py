"""What a second process gains a campaign, and that its result has the same bytes.

    python benchmarks/campaign.py [--shards 8] [--turns 3] [--out benchmarks/results/campaign.json]

The same shards of `campaign engine leviathan` on one process and on two, in turns within one run. The clock runs from
when every process has done a first shard until the last shard has ended.
    gain        seconds on one, divided by seconds on two: on a busy machine it says what else ran
    processor   seconds of the processor that a second of the clock got; 1 and 2 where cores are idle
    occupied    the share of the processes' time in which a shard was at work, however slowly
    idle cores  the gain that processes so occupied would have with a core each: 2 * occupied, times the processor time
                of the shards on one, divided by that on two
"""

import argparse
import json
import os
import platform
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from refengine.jobs.campaign import merged
from refengine.jobs.processes import Processes, cores
from refengine.jobs.ranges import Range
from refengine.jobs.run import Job, run
from refengine.report.canonical import canonical
from refengine.selfcheck import at_length

ROUNDS = 1 << 17  # of a shard: two seconds


def shard(number: int) -> tuple[Any, float]:
    """A shard, and the processor time that it took."""
    begun = time.process_time()
    counts = at_length.shard("leviathan", number % 2, Range(number * ROUNDS, ROUNDS), 0)
    return counts, time.process_time() - begun


def timed(count: int, shards: int) -> tuple[str, float, float, float]:
    """(text of the sum, seconds, processor seconds, occupied) on so many processes."""
    first = [Job(f"first {number}", partial(shard, number)) for number in range(count)]
    jobs = [*first, *(Job(f"shard {number}", partial(shard, number)) for number in range(shards))]
    made: dict[str, Any] = {}
    started = ended = spent = at_work = 0.0
    for job, (counts, own), seconds in run(jobs, Processes(count, (at_length.__name__,))):
        ended = time.perf_counter()
        if job in first:
            started = ended
        else:
            made[job.name], spent, at_work = counts, spent + own, at_work + seconds
    return (
        canonical(merged(made[name] for name in sorted(made))),
        ended - started,
        spent,
        at_work / (count * (ended - started)),
    )


def rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(figure, 2) for name, figure in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts, turns = set(), []
    for turn in range(options.turns):
        found = {}
        for count in (1, 2) if turn % 2 else (2, 1):
            text, seconds, spent, occupied = timed(count, options.shards)
            texts.add(text)
            found[count] = {"seconds": seconds, "processor": spent / seconds, "occupied": occupied}
        one, two = found[1], found[2]
        work = one["processor"] * one["seconds"] / (two["processor"] * two["seconds"])
        gains = {"gain": one["seconds"] / two["seconds"], "idle cores": 2 * two["occupied"] * work}
        turns.append({"one": rounded(one), "two": rounded(two), **rounded(gains), "load": round(os.getloadavg()[0], 1)})
        print(json.dumps(turns[-1]), flush=True)
    result = {
        "where": f"{platform.machine()}, {cores()} cores, python {platform.python_version()}",
        "rounds of a shard": ROUNDS,
        "shards": options.shards,
        "bytes identical": len(texts) == 1,
        "gain, median": statistics.median(turn["gain"] for turn in turns),
        "idle cores, median": statistics.median(turn["idle cores"] for turn in turns),
        "turns": turns,
    }
    print(json.dumps({key: value for key, value in result.items() if key != "turns"}))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
