"""Calls to detection for every listed defect, from the first call of the default audit, beside the fewest possible.

    python benchmarks/power.py [--calls 200000] [--seeds 1] [--out benchmarks/results/power.json] [--only TEXT]

The drive of `audit kernel` runs as it is, on a simulated subject that emits by the law of the defect. Per defect:

    calls      until the evidence reaches 1/alpha, or a token of probability zero ends it
    kl         nats a call on the inputs that were used, up to then
    ratio      calls * kl / log(1/alpha): 1 is what one who knew the defect would need
    share      kl over the largest nats a call that a search over inputs finds for this defect

A defect whose best input gives less than 1e-5 nats a call is not for sampling: the exact depth of the audit is.
"""

import argparse
import json
import statistics
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from refengine.audit.child import Outcome
from refengine.audit.drive import Drive
from refengine.audit.past import features
from refengine.audit.schedule import Case, case, cases, step
from refengine.audit.witness import diagnose
from refengine.audit.worker import turn
from refengine.evidence.alternatives import alternatives
from refengine.evidence.bets import BALL
from refengine.evidence.rows import Rows
from refengine.evidence.sequential import DEFECTS, CaseEvidence

ALPHA = 1e-6
CAP = np.log(1e6)  # nats: an impossible token is worth as much as the whole verdict


def laws_of(item: Case) -> dict[str, Rows]:
    with np.errstate(all="ignore"):
        return alternatives(item.p, item.q)


class Simulated:
    """Stands where the child stands: answers "run" with tokens drawn from `laws[case]` [lanes, gamma + 1, C, V]. A call
    is one lane in its turn, or with `batch` every lane at once."""

    def __init__(self, told: dict[str, Case], laws: dict[str, Rows], batch: bool = False) -> None:
        self.told, self.laws, self.batch = told, laws, batch

    def ask(self, request: dict[str, Any], seconds: float) -> Outcome:
        if request["op"] != "run":
            return Outcome("result")
        item, law = self.told[request["name"]], self.laws[request["name"]]
        calls, width = len(request["seeds"]), item.lanes if self.batch else 1
        generator = np.random.default_rng(request["seeds"][0].tolist())
        turns = [turn(request["start"] + t, item.lanes) for t in range(calls)]
        lane = np.tile(np.arange(width), calls) if self.batch else np.array(turns)
        n = len(lane)
        tokens = np.full((n, item.gamma + 1), -1, dtype=np.int32)
        live, context = np.ones(n, dtype=bool), np.zeros(n, dtype=np.int64)
        for i in range(item.gamma + 1):
            row = law[lane, i, context]
            cdf = row.cumsum(-1)
            y = (generator.random(n)[:, None] * cdf[:, -1:] < cdf).argmax(-1)
            tokens[live, i] = y[live]
            if i < item.gamma:  # a draft is kept as often as law and q can agree on it
                at = np.arange(n)
                agree = np.minimum(row, item.q[lane, i, context])[at, y] / row[at, y]
                live = live & (generator.random(n) < agree)
            context = np.asarray(step(context, y, item.contexts))
        if item.ids:
            tokens = np.where(tokens < 0, tokens, np.take(item.ids, tokens)).astype(np.int32)
        tokens = tokens.reshape(calls, width, -1)
        reply = {"tokens": tokens, "drafts": tokens[:, :, : item.gamma], "broken": None}
        return Outcome("result", reply)


def nats(law: Rows, p: Rows) -> Rows:
    """KL(law || p) at every place, an impossible token counting CAP."""
    with np.errstate(all="ignore"):
        terms = np.where(law > 0, law * np.where(p > 0, np.log(law / p), CAP), 0.0)
    return np.asarray(np.minimum(terms.sum(-1), CAP))


def reach(item: Case, law: Rows) -> Rows:
    """How often a call visits each place, lanes in turn: [lanes, gamma + 1, contexts], contexts as equally likely."""
    keep = np.minimum(law[:, :-1], item.q).sum(-1).mean(-1)
    visits = np.concatenate([np.ones((item.lanes, 1)), np.cumprod(keep, axis=1)], axis=1)
    return np.asarray(np.repeat(visits[:, :, None], item.contexts, axis=2) / item.lanes / item.contexts)


def in_batches(name: str) -> bool:
    """Lanes are mixed up where there are several in a call."""
    return "another lane" in name


def per_call(name: str, item: Case, law: Rows) -> float:
    lanes = item.lanes if in_batches(name) else 1
    return float((reach(item, law) * nats(law, item.p)).sum() * lanes)


def best_inputs(seeds: int = 300) -> dict[str, float]:
    """The most nats a call for every defect, over the schedule's inputs and a random search beside it."""
    generator = np.random.default_rng(7)
    best = dict.fromkeys(DEFECTS, 0.0)
    pool = [item for item in cases() if item.vocabulary <= 64]
    for k in range(seeds):
        vocabulary, gamma = int(generator.integers(2, 7)), int(generator.integers(1, 6))
        rows = generator.dirichlet(
            np.full(vocabulary, 10.0 ** generator.uniform(-1.5, 0.5)), size=(3, 2 * gamma + 1, 1)
        )
        pool.append(case(f"search {k}", rows[:, : gamma + 1], rows[:, gamma + 1 :]))
    for item in pool:
        for name, law in laws_of(item).items():
            best[name] = max(best[name], per_call(name, item, law))
    return best


def detect(
    name: str,
    told: dict[str, Case],
    tables: dict[str, dict[str, Rows]],
    evidence: dict[str, CaseEvidence],
    seed: int,
    calls: int,
) -> dict[str, Any]:
    """One audit of the defect."""
    laws = {case_name: tables[case_name][name] for case_name in told}
    batch = in_batches(name)
    child: Any = Simulated(told, laws, batch)
    drive = Drive(child, "verify_batch" if batch else "verify", seed, ALPHA, monotonic() + 3600.0)
    for case_name, item in told.items():
        evidence[case_name].reset()
        drive.adopt(item, evidence[case_name])
    end = None
    for case_name, count in drive.schedule(calls):
        end = drive.run(case_name, count)
        if end is not None:
            break
    spent = 0.0
    for case_name, found in evidence.items():
        spent += float((found.counts[0].sum(-1) * nats(laws[case_name], told[case_name].p).ravel()).sum())
    used = drive.calls
    return {
        "ended": end.kind if end else "not detected",
        "calls": used,
        "kl": spent / used,
        "named": name in diagnose(drive).split(" or "),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    told = {item.name: item for item in cases()}
    tables = {name: laws_of(item) for name, item in told.items()}
    evidence = {name: CaseEvidence(item.p, item.q, features(item), BALL) for name, item in told.items()}
    best = best_inputs()
    rows = []
    for name in DEFECTS:
        if options.only not in name:
            continue
        tries = [detect(name, told, tables, evidence, seed, options.calls) for seed in range(options.seeds)]
        calls, kl = statistics.median(t["calls"] for t in tries), statistics.median(t["kl"] for t in tries)
        row = {"defect": name, "ended": tries[0]["ended"], "calls": calls, "kl": kl, "best_kl": best[name]}
        row |= {"ratio": calls * kl / CAP, "share": kl / best[name] if best[name] else 0.0}
        row["named"] = statistics.mean(t["named"] for t in tries)
        rows.append(row)
        print(
            f"{name:62s} {row['ended']:12s} {calls:8.0f} calls  kl {kl:.1e}  best {best[name]:.1e}  "
            f"ratio {row['ratio']:6.2f}  share {row['share']:.2f}  named {row['named']:.1f}",
            flush=True,
        )
    middle = [r["ratio"] for r in rows if 1e-5 <= r["kl"] < 1 and r["ended"] != "not detected"]
    if middle:
        print(f"median ratio for 1e-5 <= kl < 1: {statistics.median(middle):.2f} over {len(middle)} defects")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(
            json.dumps([{k: round(v, 8) if isinstance(v, float) else v for k, v in r.items()} for r in rows], indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
