"""Every committed record: which entries are stale, and one command that makes them again.

`python -m refengine.selfcheck.records [NAME ...]` (`make records`) runs what is stale of the records named, or of all,
the quick ones first; every one of them writes as it goes and resumes. `--list` only says what is stale; exit code 1
where anything is.
"""

import subprocess
import sys

from refengine.bugs.mutation import record as mutation
from refengine.selfcheck import recorded, tests_on_record
from refengine.selfcheck.claims import coq_bridge, hypotheses, mutants_of_rules, mutants_of_tests
from refengine.selfcheck.drafters import committed_bits, committed_cells
from refengine.selfcheck.effects import over_seeds
from refengine.source_edits.committed import Committed
from refengine.source_tree import ROOT

# Each with the arguments of python that make it again. What others are computed from comes before them.
RECORDS: dict[str, tuple[Committed, tuple[str, ...]]] = {
    "bridge": (coq_bridge.RECORD, ("-m", "proofs.bridge", "--write")),
    "hypotheses": (hypotheses.RECORD, ("-m", "proofs.hypotheses")),
    "links": (mutants_of_rules.RECORD, ("-m", mutants_of_rules.__name__)),
    "own_tests": (mutants_of_tests.RECORD, ("-m", "refengine.selfcheck.claims.claims", "--link")),
    "fused_taps": (over_seeds.FUSED_RECORD, ("benchmarks/fused_taps.py",)),
    "training": (over_seeds.RECORD, ("-m", "benchmarks.training")),  # findings read these two
    "findings": (recorded.RECORD, ("-m", recorded.__name__)),
    "mutation": (mutation.RECORD, ("-m", "refengine.bugs.mutation.run")),
    "cells": (committed_cells.RECORD, ("-m", committed_cells.__name__)),
    "bits": (committed_bits.RECORD, ("-m", committed_bits.__name__)),
    "tests": (tests_on_record.RECORD, ("-m", tests_on_record.__name__)),
}

# What is stale and known to be: the report says `not tested` of it, and the tests demand that it is listed.
KNOWN_STALE: dict[str, str] = {}


def main() -> int:
    """Make again what is stale; exit code 1 where something still is."""
    names = [name for name in sys.argv[1:] if name != "--list"] or list(RECORDS)
    if unknown := [name for name in names if name not in RECORDS]:
        print(f"there is no record {unknown[0]}: one of {', '.join(RECORDS)}", file=sys.stderr)
        return 2
    left = []
    for name in names:
        record, arguments = RECORDS[name]
        stale = record.every_stale()
        print(f"{name}: {len(stale)} stale", flush=True)
        if stale and "--list" not in sys.argv:
            subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False)
            stale = record.every_stale()
        left += [f"still stale: {name}: {key}" for key in stale]
    print("\n".join(left), end="\n" * bool(left))
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
