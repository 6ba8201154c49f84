"""Ten thousand histories of every drafter, in company and bit for bit: run beforehand, in shards anyone can run again.

`python -m refengine.selfcheck.drafters.committed_bits [DRAFTER ...]` runs what `bits.json` lacks or holds stale; the
file is rewritten after every entry, so a run that is cut off goes on where it was. `--shard DRAFTER DTYPE NUMBER` runs
one shard again and prints, of whatever is otherwise than alone, the shortest script that still shows it. `make stat`
runs one shard of every entry, drawn by the commit's id.

A history is all that became of one request from its prompt on: the passes that its rows were in, their places in them,
what was kept and what was not, passes taken back, branches, recomputations. Two that are alike count once, and one in
which no block was judged does not count. In `padded float64`, the ordinary mode, tokens are compared and no bits.
"""

import argparse
import random
import sys
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch

from refengine.decoder.drafters.eagle_trees import Chain, DynamicTree
from refengine.jobs.options import add_options, workers
from refengine.jobs.run import Job, run
from refengine.report.finding import Finding, Recipe
from refengine.report.terminal import Progress
from refengine.selfcheck.drafters.company import MODES, Company, Script, drawn, shortest
from refengine.selfcheck.drafters.computed_from import NUMBERS, parts_of
from refengine.selfcheck.drafters.row import Row
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.committed import Committed, digest, module_digest
from refengine.source_tree import RESULTS

BITWISE = {"float32": torch.float32, "bfloat16": torch.bfloat16}
PADDED = "padded float64"
SHARD, REQUESTS = 1000, 60  # histories of a shard at least, and how many requests they are about
SHARDS = {**dict.fromkeys(BITWISE, 10), PADDED: 1}
MAX_LINES = 5  # of what is otherwise, in an entry
MODULE = "refengine.selfcheck.drafters.committed_bits"  # its name also where it is the program
COMMAND = f"python -m {MODULE}"


def company(drafter: str, dtype: str, number: int) -> tuple[Company, random.Random]:
    """The company of a shard, and the generator of its scripts: sizes of drafts, slots, lanes and rule vary."""
    source = random.Random(f"{drafter} {dtype} {number}")
    row, mode = varied(ROWS[drafter], source), list(MODES)[number % len(MODES)]
    if dtype == PADDED:
        return Company(row, torch.float64, mode=mode), source
    slots, lanes = source.choice((32, 48)), source.choice((None, 1, 16, 16))
    return Company(row, BITWISE[dtype], slots, lanes, mode), source


def varied(row: Row, source: random.Random) -> Row:
    """The same drafter with chains and trees of other sizes, where no file fixes them."""
    tree = DynamicTree(source.randint(2, 9), source.randint(1, 3), source.randint(1, 3))
    sizes = {"gamma": source.randint(1, 4), "length": source.randint(1, 3)}
    plans: dict[type, Any] = {Chain: Chain(sizes["gamma"]), DynamicTree: tree}
    options = {name: plans.get(type(value), sizes.get(name, value)) for name, value in row.options.items()}
    return replace(row, options=options)


def shard(
    drafter: str, dtype: str, number: int, histories: int = SHARD
) -> tuple[Counter[str], list[Script], list[str]]:
    """The counts of a shard or of its beginning, the scripts that showed something otherwise than alone, and what."""
    ours, source = company(drafter, dtype, number)
    scripts, wrong, first = list[Script](), list[str](), number * REQUESTS
    while len(ours.histories) < histories:
        script = drawn(source, range(first, first + REQUESTS))
        if lines := ours.play(script):
            scripts.append(script)
            wrong += lines
    ours.counted["histories"] = len(ours.histories)
    return ours.counted, scripts, wrong


# --- the record ------------------------------------------------------------------------------------------------------


def keys() -> list[str]:
    """The first shards of everything, then the second ones: a run that is cut off has looked at every drafter."""
    most = max(SHARDS.values())
    every = [(drafter, dtype, n) for n in range(most) for drafter in ROWS for dtype in SHARDS if n < SHARDS[dtype]]
    return [", ".join(map(str, one)) for one in every]


def parsed(key: str) -> tuple[str, str, int]:
    drafter, dtype, number = key.split(", ")
    return drafter, dtype, int(number)


def digest_of(key: str) -> str:
    """Of a shard, and of what it is computed from."""
    return digest(key, _source(parsed(key)[0]))


@cache
def _source(drafter: str) -> str:
    """Drafter and target, tensor for tensor; the source of both, of the loop and of what examines them."""
    agreement = module_digest("refengine.engine.rules.agreement")
    return digest(module_digest(MODULE, NUMBERS), agreement, parts_of(drafter, 0.0, ROWS[drafter].rules[0]))


RECORD = Committed(RESULTS / "bits.json", digest_of, COMMAND, keys)


def entry(key: str) -> dict[str, Any]:
    """One shard as it is committed."""
    counted, _, wrong = shard(*parsed(key))
    return {**dict(sorted(counted.items())), "otherwise": len(wrong), "first": wrong[:MAX_LINES]}


def main(arguments: list[str] | None = None) -> int:
    """Run every entry that is missing or stale, of the drafters named or of all; or one shard. Exit code 1 where
    something was otherwise than alone."""
    parser = argparse.ArgumentParser(description="Run every entry of bits.json that is missing or stale.")
    parser.add_argument("drafters", nargs="*", help="only these (default: all)")
    parser.add_argument("--shard", nargs=3, metavar=("DRAFTER", "DTYPE", "NUMBER"), help="one shard again")
    add_options(parser)
    given = parser.parse_args(arguments)
    if given.shard:
        return again(given.shard[0], given.shard[1], int(given.shard[2]))
    stale = [key for key in RECORD.every_stale() if not given.drafters or parsed(key)[0] in given.drafters]
    with Progress("bits", len(stale)) as shown:
        where = workers(given.workers, given.cluster, (MODULE,))
        for job, made, seconds in run([Job(key, partial(entry, key)) for key in stale], where, shown.at):
            RECORD.put(job.name, made)
            shown.finish(f"{job.name}: {made['histories']} histories, {seconds:.0f} s")
    return int(any(RECORD.entries()[key]["otherwise"] for key in stale))


def again(drafter: str, dtype: str, number: int) -> int:
    """One shard, and the shortest scripts of what is otherwise in it."""
    counted, scripts, wrong = shard(drafter, dtype, number)
    print(", ".join(f"{name}: {count}" for name, count in sorted(counted.items())))
    for script in scripts[:MAX_LINES]:
        ours, _ = company(drafter, dtype, number)
        short = shortest(ours.fails, script)
        print(f"{ours.play(short)}\n    {short}")
    return int(bool(wrong))


# --- what the report shows -------------------------------------------------------------------------------------------


def shown() -> list[Finding]:
    """The record as one finding: not tested where a shard is missing or stale."""
    fresh = {key: found for key in keys() if (found := RECORD.fresh(key))}
    wrong = [f"{key}: {line}" for key, found in fresh.items() for line in found["first"]]
    total, each = Counter[str](), Counter[tuple[str, str]]()
    for key, found in fresh.items():
        total += Counter({name: count for name, count in found.items() if isinstance(count, int)})
        each[parsed(key)[:2]] += found["histories"]
    least = {f"histories of a drafter in {dtype}, at least": min(each[x, dtype] for x in ROWS) for dtype in SHARDS}
    missing = len(keys()) - len(fresh)
    return [
        Finding(
            id="decoder/bits",
            subject="refengine decoder, every drafter",
            claim="In the bitwise mode a row has one sequence of bits, in any company and after any history; a request "
            "says what it says alone.",
            source="measured here",
            verdict="violated" if wrong else "not tested" if missing else "consistent",
            reason=f"{missing} of {len(keys())} shards are stale or were not run (run: {COMMAND})"
            if missing and not wrong
            else "",
            method="committed result, its digest that of this source: random scripts of requests that come, branch, "
            "are rejected, taken back, computed anew and go, every row against the same text alone",
            recipe=Recipe(function=f"{MODULE}:shown", arguments={}),
            numbers={"drafters": len(ROWS), **least, **{name: total[name] for name in sorted(total)}},
            notes=wrong[:MAX_LINES],
        )
    ]


if __name__ == "__main__":
    sys.exit(main())
