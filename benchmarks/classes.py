"""Whether shared random numbers are named: real subjects, whole audits, fresh seeds.

    python benchmarks/classes.py [--seeds 4] [--out benchmarks/results/classes.json]

Three classes: one coin for the whole block, one noise for draft and recovery, random numbers that the rows of a batch
share. An audit names the class right when its diagnosis is that of the class and of no other. An audit is a job:
--workers and --cluster say where.
"""

import argparse
import json
from collections import Counter
from functools import partial
from pathlib import Path

from refengine.audit.kernel.audit import audit_kernel
from refengine.evidence.naming import DEPENDENT_ROWS, ONE_COIN
from refengine.jobs.campaign import campaign
from refengine.jobs.options import add_options, workers
from refengine.jobs.run import Job
from refengine.source_tree import FIXTURES

SUBJECTS = str(FIXTURES / "subjects")
CLASSES = {
    "one_coin": ("verify", ONE_COIN),
    "one_coin_numpy": ("verify", ONE_COIN),
    "draft_and_recovery_share_noise": ("round", "draft and verifier share coins: one noise drafts and corrects"),
    "rows_share_coins": ("verify_batch", DEPENDENT_ROWS),
    "rows_share_noise": ("verify_batch", DEPENDENT_ROWS),
    "late_rows_share_coins": ("verify_batch", DEPENDENT_ROWS),
}


def said(name: str, seed: int) -> str:
    """The diagnosis of one audit, or a verdict that is no accusation."""
    (finding,) = audit_kernel(f"shared:{name}", CLASSES[name][0], path=SUBJECTS, seed=seed, seconds=300.0)
    return finding.diagnosis if finding.verdict == "violated" else finding.verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path)
    add_options(parser)
    options = parser.parse_args()
    audits = [(name, seed) for name in CLASSES for seed in range(options.seeds)]
    jobs = [Job(f"{name}, seed {seed}", partial(said, name, seed)) for name, seed in audits]
    lines = campaign(jobs, workers(options.workers, options.cluster), title="classes", told=lambda line: line.made)
    rows, right = [], 0
    for name, (_, wanted) in CLASSES.items():
        heard = Counter(line.made for line, audit in zip(lines, audits, strict=True) if audit[0] == name)
        right += heard[wanted]
        rows.append({"subject": name, "class": wanted, "audits": options.seeds, "right": heard[wanted], "said": heard})
        print(f"{name:32s} {heard[wanted]} of {options.seeds} named right: {dict(heard)}", flush=True)
    share = right / (len(CLASSES) * options.seeds)
    print(f"named right: {share:.1%}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"right": share, "subjects": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
