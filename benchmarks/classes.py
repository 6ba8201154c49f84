"""Whether shared random numbers are named: real subjects, whole audits, fresh seeds.

    python benchmarks/classes.py [--seeds 4] [--out benchmarks/results/classes.json]

Three classes: one coin for the whole block, one noise for draft and recovery, random numbers that the rows of a batch
share. An audit names the class right when its diagnosis is that of the class and of no other.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from refengine.audit.kernel.audit import audit_kernel
from refengine.evidence.naming import DEPENDENT_ROWS, ONE_COIN
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows, right = [], 0
    for name, (signature, wanted) in CLASSES.items():
        said: Counter[str] = Counter()
        for seed in range(options.seeds):
            (finding,) = audit_kernel(f"shared:{name}", signature, path=SUBJECTS, seed=seed, seconds=300.0)
            said[finding.diagnosis if finding.verdict == "violated" else finding.verdict] += 1
        right += said[wanted]
        rows.append({"subject": name, "class": wanted, "audits": options.seeds, "right": said[wanted], "said": said})
        print(f"{name:32s} {said[wanted]} of {options.seeds} named right: {dict(said)}", flush=True)
    share = right / (len(CLASSES) * options.seeds)
    print(f"named right: {share:.1%}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"right": share, "subjects": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
