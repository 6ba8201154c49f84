"""Calls to detection for every listed defect, from the first call of the default audit, beside the fewest possible.

    python benchmarks/power.py [--calls 200000] [--seeds 9] [--out benchmarks/results/power.json] [--only TEXT]

The campaign of `audit kernel` runs as it is, on a simulated subject that emits by the law of the defect; medians over
the seeds, one seed where it takes more than ten thousand calls. --workers and --cluster say where; a defect is a job.
Per defect:

    calls      until the evidence reaches 1/alpha, or a token of probability zero ends it
    kl         nats a call on the inputs that were used, up to then, against the nearest law of the null (bets.BALL)
    ratio      calls * kl / log(1/alpha): 1 is what one who knew the defect would need
    floor      log(1/alpha) / kl, rounded up: what no test whatever goes below on these inputs (Wald)
    share      kl over the largest nats a call that a search over inputs finds for this defect

A defect whose best input gives less than 1e-5 nats a call is not for sampling: a function that has it is audited, and
the exact depth finds it. An impossible token counts log(1/alpha) nats, and so does at most a whole call.

Eight calls are the bar above 1 nat a call. Between 1 and 1.73 nats a call they are out of reach for information alone,
for log(1/alpha) nats (13.8 at alpha = 1e-6): there the bar is one and a half times the floor, as it is below 1 nat.
"""

import argparse
import json
import math
import statistics
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from refengine.audit.inputs.case import Case, case
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.audit import audit_kernel
from refengine.audit.kernel.diagnosis import diagnose
from refengine.evidence.bets.defect_laws import alternatives
from refengine.evidence.e_process import DEFECTS
from refengine.evidence.naming import parts
from refengine.evidence.rows import Rows
from refengine.jobs.campaign import campaign
from refengine.jobs.options import add_options, workers
from refengine.jobs.run import Job
from refengine.selfcheck.instrument.simulated import CAP, Audits, nats
from refengine.source_tree import FIXTURES

EXACTLY = {  # defects that no sample shows, as functions that the exact depth takes apart
    "half precision: the residual is rounded to bfloat16": "residual_bfloat16",
    "half precision: the residual is rounded to float16": "residual_float16",
    "half precision: the normalised residual is rounded to bfloat16": "normalised_residual_bfloat16",
}
SUBJECTS = str(FIXTURES / "subjects")
FEW = 10_000  # calls up to which a defect is tried with every seed
LEAST = 1e-5  # nats a call, below which a defect is not for sampling


def in_batches(name: str) -> bool:
    """Lanes are mixed up where there are several in a call."""
    return "another lane" in name


def per_call(name: str, item: Case, law: Rows) -> float:
    """Nats a call, at most log(1/alpha): no call is worth more than the verdict."""
    lanes = item.lanes if in_batches(name) else 1
    return float(min((item.reach(law) / item.lanes * nats(law, item.p)).sum() * lanes, CAP))


def best_inputs(seeds: int = 300) -> dict[str, float]:
    """The most nats a call for every defect, over the schedule's inputs and a random search beside it."""
    generator = np.random.default_rng(7)
    best = dict.fromkeys(DEFECTS, 0.0)
    pool = list(cases())
    for k in range(seeds):
        vocabulary, gamma = int(generator.integers(2, 7)), int(generator.integers(1, 6))
        rows = generator.dirichlet(
            np.full(vocabulary, 10.0 ** generator.uniform(-1.5, 0.5)), size=(3, 2 * gamma + 1, 1)
        )
        pool.append(case(f"search {k}", rows[:, : gamma + 1], rows[:, gamma + 1 :]))
    for item in pool:
        for name, law in alternatives(item.p, item.q, item.sizes).items():
            best[name] = max(best[name], per_call(name, item, law))
    return best


@cache
def audits() -> Audits:
    """Of this process: its tables take longer to make than a gross defect takes to find."""
    return Audits()


@cache
def tables() -> dict[str, dict[str, Rows]]:
    """The laws of every defect, by input."""
    return {name: alternatives(item.p, item.q, item.sizes) for name, item in audits().told.items()}


def detect(name: str, seed: int, calls: int) -> dict[str, Any]:
    """One audit of the defect."""
    wrong = {told: table[name] for told, table in tables().items()}
    ran, end, spent = audits().run(wrong, seed, calls, in_batches(name))
    used = ran.calls
    return {
        "ended": end.kind if end else "not detected",
        "calls": used,
        "kl": spent / used,
        "named": name in parts(diagnose(ran)),
    }


def exactly(name: str) -> dict[str, Any]:
    """The audit of a real function with a defect that is too small for sampling."""
    (finding,) = audit_kernel(f"rounding:{EXACTLY[name]}", "verify", path=SUBJECTS, seconds=300.0)
    exact = finding.magnitude is not None and finding.magnitude.exact
    ended = "exact law" if finding.verdict == "violated" and exact else finding.verdict
    return {"ended": ended, "calls": 0, "kl": 0.0, "named": name in parts(finding.diagnosis)}


def judged(name: str, best: float, seeds: int, calls: int) -> dict[str, Any]:
    """The row of one defect; `best`, the most nats a call that a search has found for it."""
    if best < LEAST:
        tries = [exactly(name)]
    else:
        tries = [detect(name, 0, calls)]
        more = seeds if tries[0]["calls"] <= FEW else 1
        tries += [detect(name, seed, calls) for seed in range(1, more)]
    middle, kl = statistics.median(t["calls"] for t in tries), statistics.median(t["kl"] for t in tries)
    row = {"defect": name, "ended": tries[0]["ended"], "calls": middle, "kl": kl, "best_kl": best}
    row |= {"most_calls": max(t["calls"] for t in tries), "seeds": len(tries)}
    row |= {
        "floor": math.ceil(CAP / kl) if kl else 0,
        "ratio": middle * kl / CAP,
        "share": min(kl, CAP) / best if best else 0.0,
    }
    return row | {"named": statistics.mean(t["named"] for t in tries)}


def told(row: dict[str, Any]) -> str:
    return (
        f"{row['ended']:12s} {row['calls']:8.0f} calls  kl {row['kl']:.1e}  best {row['best_kl']:.1e}  "
        f"ratio {row['ratio']:6.2f}  share {row['share']:.2f}  named {row['named']:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    add_options(parser)
    options = parser.parse_args()
    best = best_inputs()
    names = [name for name in DEFECTS if options.only in name]
    jobs = [Job(name, partial(judged, name, best[name], options.seeds, options.calls)) for name in names]
    lines = campaign(jobs, workers(options.workers, options.cluster), title="power", told=lambda line: told(line.made))
    rows = [line.made for line in lines]
    summary(rows)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        short = [{k: round(v, 8) if isinstance(v, float) else v for k, v in r.items()} for r in rows]
        size = {"calls at most": options.calls, "seeds at most": options.seeds}
        options.out.write_text(json.dumps({**size, "defects": short}, indent=1) + "\n")


def summary(rows: list[dict[str, Any]]) -> None:
    """The figures that the defects are judged by together."""
    sampled = [row for row in rows if row["best_kl"] >= LEAST]
    middle = [row["ratio"] for row in sampled if row["kl"] < 1]
    gross = [row["calls"] for row in sampled if row["kl"] >= 1]
    low = [row["defect"] for row in sampled if row["share"] < 0.1]
    print(f"killed: {sum(row['ended'] not in ('not detected', 'consistent') for row in rows)} of {len(rows)}")
    if middle:
        print(f"ratio, median of {len(middle)} below 1 nat a call: {statistics.median(middle):.2f}")
    if gross:
        late = [row["defect"] for row in sampled if row["kl"] >= 1 and row["calls"] > 8]
        over = [row["defect"] for row in sampled if row["kl"] >= 1 and row["calls"] > max(8, 1.5 * CAP / row["kl"])]
        print(f"calls, {len(gross)} above 1 nat: {statistics.median(gross):.0f} (median), {max(gross):.0f} (most)")
        print(
            f"more than 8 of them: {'; '.join(late) or 'none'}; and more than 1.5 floors: {'; '.join(over) or 'none'}"
        )
    if sampled:
        shares = [row["share"] for row in sampled]
        print(
            f"share, median {statistics.median(shares):.2f}; below 0.1: {len(low)} of {len(sampled)}: {'; '.join(low)}"
        )
    print(f"named right: {statistics.mean(row['named'] for row in rows):.1%}")


if __name__ == "__main__":
    main()
