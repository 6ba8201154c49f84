"""Small drafters trained as the documents describe, over eight seeds: benchmarks/results/training.json.

    python -m benchmarks.training [RUN ...]      resumes by run; about ten minutes of one core for all of them

What is trained and what is compared stands in `refengine/selfcheck/effects/over_seeds.py`, which reads the result; how
it is trained, in the files beside this one.
"""

import sys
from importlib import import_module

import torch

from benchmarks.training.world import world
from refengine.selfcheck.effects.over_seeds import RECORD, RUNS


def main() -> int:
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(RUNS)
    if unknown := [name for name in names if name not in RUNS]:
        print(f"there is no run {unknown[0]}: one of {', '.join(RUNS)}", file=sys.stderr)
        return 2
    for name in names:
        if RECORD.stale(name):
            file, function = name.split(".")
            values = getattr(import_module(f"benchmarks.training.{file}"), function)(world())
            RECORD.put(name, {"values": values})
            print(name, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
