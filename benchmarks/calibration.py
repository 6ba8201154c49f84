"""False alarms of correct samplers, measured: many audits side by side, through the evidence that `audit kernel` uses.

    python benchmarks/calibration.py [--audits 100000] [--out benchmarks/results/calibration.json]

With --out every thousand audits are kept beside it as soon as they have ended, in a journal that a later run continues
and that goes when the result is written; each thousand has a generator of its own. --workers and --cluster say
where. What runs is
refengine/selfcheck/instrument/calibration.py. Printed: the rate of false alarms at three alphas, with its 99.9 % lower
confidence bound, which must not exceed alpha.
"""

import argparse
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np

from refengine.evidence.distance import tv_at_least
from refengine.jobs.campaign import campaign, journal_of
from refengine.jobs.options import add_options, workers
from refengine.jobs.run import Job
from refengine.selfcheck.instrument.calibration import BLOCKS, CASES, audits

ALPHAS = (1e-2, 1e-3, 1e-6)
SIDE_BY_SIDE = 1000


def thousand(seed: int, number: int) -> list[float]:
    """The largest log evidence that each audit of one shard ever saw."""
    most: list[float] = audits(SIDE_BY_SIDE, np.random.default_rng([seed, number])).tolist()
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    add_options(parser)
    options = parser.parse_args()
    count, path = -(-options.audits // SIDE_BY_SIDE), options.out and options.out.with_suffix(".journal")
    jobs = [Job(f"thousand {number}", partial(thousand, options.seed, number)) for number in range(count)]
    journal = journal_of(path, {"campaign": "calibration", "seed": options.seed}, made=list[float]) if path else None
    with journal or nullcontext():
        lines = campaign(jobs, workers(options.workers, options.cluster), journal, title="calibration")
    seen = np.concatenate([line.made for line in lines])
    rows = []
    for alpha in ALPHAS:
        alarms = int((seen >= -np.log(alpha)).sum())
        low = tv_at_least(alarms, len(seen), 0.0, 0.999)
        rows.append({"alpha": alpha, "false_alarms": alarms, "audits": len(seen), "lower_bound_99.9": low})
        print(f"\nalpha {alpha:g}: {alarms} false alarms in {len(seen)} audits; 99.9 % lower bound {low:.2g}", end="")
        assert low <= alpha, "correct samplers are accused too often"
    print()
    if options.out:
        result = {"calls_per_audit": sum(BLOCKS) * len(CASES), "cases": list(CASES), "rates": rows}
        quantiles = (0.5, 0.9, 0.99, 0.999, 0.9999)
        result["quantiles_of_log10_evidence"] = {
            str(q): round(float(np.quantile(seen, q) / np.log(10)), 3) for q in quantiles
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
        path.unlink()


if __name__ == "__main__":
    main()
