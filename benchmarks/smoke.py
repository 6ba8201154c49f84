"""Whole audits of correct subjects from the command line: none may accuse, and each must end in time.

    python benchmarks/smoke.py [--audits 200] [--calls N] [--at-a-time 2] [--out benchmarks/results/smoke.json]

The subjects of fixtures/subjects/correct.py take turns, each audit with a seed of its own. With --out every audit is
kept as soon as it has ended, so that a later run continues where this one stopped.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from refengine.source_tree import FIXTURES

SUBJECTS = FIXTURES / "subjects"
CORRECT = {
    "leviathan": "verify",
    "batch": "verify_batch",
    "lockstep": "verify_batch",
    "shared_noise_agreement": "round",
    "block": "verify",
    "agreement": "verify",
    "point_mass": "verify",
    "python_random": "verify",
    "buffered": "verify",
    "alias": "verify",
}
VERDICTS = {0: "consistent", 1: "violated", 2: "bad input", 3: "not tested", 70: "internal error"}


def audit(number: int, calls: int | None) -> dict[str, Any]:
    """One audit: which, with which seed, how many calls at most (by default those of the command), how it ended."""
    name, signature = list(CORRECT.items())[number % len(CORRECT)]
    command = [sys.executable, "-m", "refengine.cli", "audit", "kernel", f"correct:{name}"]
    options = ["--signature", signature, "--path", str(SUBJECTS), "--seed", str(number)]
    options += ["--calls", str(calls)] if calls else []
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    verdict = VERDICTS.get(done.returncode, str(done.returncode))
    return {"subject": name, "seed": number, "calls": calls or "default", "verdict": verdict}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--at-a-time", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.out and options.out.exists():
        rows = json.loads(options.out.read_text())
    with ThreadPoolExecutor(options.at_a_time) as pool:
        for row in pool.map(audit, range(len(rows), options.audits), repeat(options.calls)):
            rows.append(row)
            print(f"{len(rows)} of {options.audits}: {row['subject']} {row['verdict']}", flush=True)
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    wrong = [row for row in rows if row["verdict"] != "consistent"]
    print(f"{len(rows)} audits of correct subjects, {len(wrong)} not consistent")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
