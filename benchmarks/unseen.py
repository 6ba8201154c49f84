"""Defects that nobody listed: random laws at one conditional of at most 8 cells, everything else being right.

    python benchmarks/unseen.py [--bugs 40] [--calls 200000] [--out benchmarks/results/unseen.json]

A place of a random input is given another law on the support of its row, mixed in by a random share; so is that place
of every lane whose rows are the same, which no function could tell apart. Printed for each:
calls, and the ratio of the nats that those calls were worth, counted from the first, to log(1/alpha); 10 is the bar.
A defect that 10 log(1/alpha) nats did not come together for in all calls has not been given its chance; it is counted
apart.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from refengine.selfcheck.instrument.simulated import CAP, Audits, nats

BAR = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bugs", type=int, default=40)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    audits, generator = Audits(), np.random.default_rng(11)
    rows: list[dict[str, Any]] = []
    few = [item for item in audits.told.values() if item.vocabulary <= 8 and item.cell is None]
    while len(rows) < options.bugs:
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
        laws = {name: told.p for name, told in audits.told.items()}
        laws[item.name] = item.p.copy()
        twins = [(item.p[i] == item.p[lane]).all() and (item.q[i] == item.q[lane]).all() for i in range(item.lanes)]
        laws[item.name][twins, position, context] = law
        campaign, end, spent = audits.run(laws, len(rows), options.calls)
        at_place = float(nats(law[None], row[None])[0])
        found = end.kind if end else "not detected"
        ratio, place = spent / CAP, f"{item.name} {[lane, position, context]}"
        rows.append({"place": place, "kl": at_place, "ended": found, "calls": campaign.calls, "ratio": round(ratio, 4)})
        print(f"{place:36s} kl {at_place:.1e}  {found:12s} {campaign.calls:7d} calls  ratio {ratio:.2f}", flush=True)
    summary(rows)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


def summary(rows: list[dict[str, Any]]) -> None:
    seen = [row["ratio"] for row in rows if row["ended"] != "not detected"]
    without = [row["ratio"] for row in rows if row["ended"] == "not detected"]
    within, middling = sum(ratio <= BAR for ratio in seen), statistics.median(seen)
    print(f"found {len(seen)} of {len(rows)}, {within} of them within {BAR:g} x", end="; ")
    print(f"ratio {middling:.2f} (median), {max(seen):.2f} (most)")
    print(f"not found: {len(without)}, {sum(ratio >= BAR for ratio in without)} of them although worth {BAR:g} x")


if __name__ == "__main__":
    main()
