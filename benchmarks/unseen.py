"""Defects that nobody listed: random laws at one conditional of at most 8 cells, everything else being right.

    python benchmarks/unseen.py [--bugs 40] [--calls 200000] [--out benchmarks/results/unseen.json]

A place of a random input is given another law on the support of its row, mixed in by a random share; so is that place
of every lane whose rows are the same, which no function could tell apart. Printed for each:
calls, and the ratio of the nats that those calls were worth, counted from the first, to log(1/alpha); 10 is the bar.
A defect that 10 log(1/alpha) nats did not come together for in all calls has not been given its chance; it is counted
apart. --workers and --cluster say where they run; a defect is a job.
"""

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from refengine.audit.inputs.hostile import cases
from refengine.evidence.rows import Rows
from refengine.jobs.campaign import campaign
from refengine.jobs.options import add_options, workers
from refengine.jobs.run import Job
from refengine.selfcheck.instrument.simulated import CAP, Audits, nats

BAR = 10.0


@cache
def audits() -> Audits:
    """Of this process: its tables take seconds to make."""
    return Audits()


@dataclass(frozen=True)
class Unseen:
    """Another law at one place of an input."""

    name: str
    at: tuple[int, int, int]  # lane, position, context
    law: Rows

    def tried(self, seed: int, calls: int) -> dict[str, Any]:
        """One audit of a subject that is right elsewhere."""
        item, (lane, position, context) = audits().told[self.name], self.at
        laws = {name: told.p for name, told in audits().told.items()}
        laws[item.name] = item.p.copy()
        twins = [(item.p[i] == item.p[lane]).all() and (item.q[i] == item.q[lane]).all() for i in range(item.lanes)]
        laws[item.name][twins, position, context] = self.law
        ran, end, spent = audits().run(laws, seed, calls)
        at_place = float(nats(self.law[None], item.p[lane, position, context][None])[0])
        found = end.kind if end else "not detected"
        place, ratio = f"{item.name} {[lane, position, context]}", spent / CAP
        return {"place": place, "kl": at_place, "ended": found, "calls": ran.calls, "ratio": round(ratio, 4)}


def drawn(count: int) -> Iterator[Unseen]:
    """Random places and laws, the same in every run."""
    generator = np.random.default_rng(11)
    few = [item for item in cases() if item.vocabulary <= 8 and item.cell is None]
    while count:
        item = few[generator.integers(len(few))]
        lane, position, context = (int(generator.integers(n)) for n in item.p.shape[:3])
        row, share = item.p[lane, position, context], 10.0 ** generator.uniform(-1.5, 0.0)
        live = row > 0
        if position == 0 and context > 0:
            continue  # rounds begin in context 0
        if live.sum() < 2 or item.reach()[lane, position, context] * item.contexts < 0.1:
            continue  # a law has to be able to differ, and the place to be met
        law = np.zeros_like(row)
        law[live] = (1 - share) * row[live] + share * generator.dirichlet(np.ones(live.sum()))
        yield Unseen(item.name, (lane, position, context), law)
        count -= 1


def told(row: dict[str, Any]) -> str:
    return (
        f"{row['place']:36s} kl {row['kl']:.1e}  {row['ended']:12s} {row['calls']:7d} calls  ratio {row['ratio']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bugs", type=int, default=40)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--out", type=Path)
    add_options(parser)
    options = parser.parse_args()
    jobs = [Job(f"{k}", partial(one.tried, k, options.calls)) for k, one in enumerate(drawn(options.bugs))]
    lines = campaign(jobs, workers(options.workers, options.cluster), title="unseen", told=lambda line: told(line.made))
    rows = [line.made for line in lines]
    summary(rows)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"calls at most": options.calls, "defects": rows}, indent=1) + "\n")


def summary(rows: list[dict[str, Any]]) -> None:
    seen = [row["ratio"] for row in rows if row["ended"] != "not detected"]
    without = [row["ratio"] for row in rows if row["ended"] == "not detected"]
    within = sum(ratio <= BAR for ratio in seen)
    print(f"found {len(seen)} of {len(rows)}, {within} of them within {BAR:g} x")
    if seen:
        print(f"ratio {statistics.median(seen):.2f} (median), {max(seen):.2f} (most)")
    print(f"not found: {len(without)}, {sum(ratio >= BAR for ratio in without)} of them although worth {BAR:g} x")


if __name__ == "__main__":
    main()
