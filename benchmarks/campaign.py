"""What a second process gains a campaign, and that its result has the same bytes.

    python benchmarks/campaign.py [--shards 8] [--turns 3] [--out benchmarks/results/campaign.json]

The same shards of `campaign engine leviathan` on one process and on two, in turns within one run. The clock runs from
when every process has done a first shard until the last shard has ended. A machine that is busy with other things
gives two processes a second share as well, so what else it does is said: its load, and the processor time that a second
of the clock got, which must be near 1 and near 2 for the ratio to be that of idle cores.
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


def timed(count: int, shards: int) -> tuple[str, float, float]:
    """(text of the sum, seconds, processor seconds) on so many processes."""
    first = [Job(f"first {number}", partial(shard, number)) for number in range(count)]
    jobs = [*first, *(Job(f"shard {number}", partial(shard, number)) for number in range(shards))]
    made: dict[str, Any] = {}
    started = ended = spent = 0.0
    for job, (counts, own), _ in run(jobs, Processes(count, (at_length.__name__,))):
        ended = time.perf_counter()
        if job in first:
            started = ended
        else:
            made[job.name], spent = counts, spent + own
    return canonical(merged(made[name] for name in sorted(made))), ended - started, spent


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
            text, seconds, spent = timed(count, options.shards)
            texts.add(text)
            found[count] = {"seconds": round(seconds, 2), "processor a second": round(spent / seconds, 2)}
        gain = found[1]["seconds"] / found[2]["seconds"]
        turns.append({"one": found[1], "two": found[2], "gain": round(gain, 2), "load": round(os.getloadavg()[0], 1)})
        print(json.dumps(turns[-1]), flush=True)
    result = {
        "where": f"{platform.machine()}, {cores()} cores, python {platform.python_version()}",
        "rounds of a shard": ROUNDS,
        "shards": options.shards,
        "bytes identical": len(texts) == 1,
        "gain, median": statistics.median(turn["gain"] for turn in turns),
        "turns": turns,
    }
    print(json.dumps({key: value for key, value in result.items() if key != "turns"}))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
