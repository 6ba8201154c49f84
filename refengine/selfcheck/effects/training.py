"""What training does for every drafter of the fixtures: mean tokens per pass before it and after.

Before: the tensors that the drafter's generator starts from, with the same seed, in the place of the trained ones
(`fixtures/untrained.py`). Both draft after the same prefixes of a text that the target wrote, and every round that can
follow is played by the real loop and weighed by its probability.
"""

import runpy
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from refengine.decoder.loop import Stop, plain
from refengine.decoder.protocols import Drafter, Target
from refengine.engine.coins import Philox
from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.drafters.contract import accepted
from refengine.selfcheck.drafters.laws.cells import CELLS, POLICIES, session
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

POLICY, PREFIXES = "top-k", 8


@torch.inference_mode()
def training() -> list[Finding]:
    """Tokens of a pass of every drafter that has weights, before and after."""
    rows = {name: tokens_per_pass(name) for name, row in ROWS.items() if row.folder}
    worse = [name for name, (before, after) in rows.items() if after <= before]
    return [
        Finding(
            id="effects/tokens-per-pass",
            subject="effects in miniature",
            claim="Training raises the mean number of tokens per pass of every drafter of the fixtures.",
            source="every document",
            verdict="violated" if worse else "consistent",
            method=f"exact mean over all rounds that can follow {PREFIXES} prefixes of a text of the target, top-k 2, "
            "temperature 1, float64; before: the tensors that training started from",
            recipe=Recipe(function=f"{__name__}:training", arguments={}),
            numbers={
                "drafters": len(rows),
                "smallest gain": Quantity(value=min(after - before for before, after in rows.values()), tolerance=1e-4),
            },
            tables={
                "tokens per pass": {
                    "drafter": list(rows),
                    "before": [Quantity(value=before, tolerance=1e-4) for before, _ in rows.values()],
                    "after": [Quantity(value=after, tolerance=1e-4) for _, after in rows.values()],
                }
            },
            notes=[f"no higher after training: {', '.join(worse)}"] if worse else [],
        )
    ]


def tokens_per_pass(name: str) -> tuple[float, float]:
    """Of one drafter under its first rule: before its training, and after."""
    row = ROWS[name]
    cell = CELLS[f"{name}/{row.rules[0]}/{POLICY}"]
    after = replace(session(cell), max_new_tokens=10**6, stop=Stop())
    before = replace(after, drafter=untrained(name, after.target))
    text = plain(after.target, POLICIES[POLICY], cell.prompt, PREFIXES, Philox(7, torch.tensor([0])))
    means = []
    for play in (before, after):
        total = 0.0
        for length in range(1, PREFIXES + 1):
            play.rebuild(cell.prompt, text[:length])
            total += 1 + accepted(play)[0].mean
        means.append(total / PREFIXES)
    return means[0], means[1]


def untrained(name: str, target: Target) -> Drafter:
    """The drafter as its generator started it."""
    row = ROWS[name]
    start = runpy.run_path(str(FIXTURES / "untrained.py"))["start"](row.folder)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(shutil.copytree(FIXTURES / row.folder, Path(scratch) / Path(row.folder).name))
        (file,) = folder.glob("*.safetensors")
        save_file(load_file(file) | {key: x.contiguous() for key, x in start.items()}, file, {"format": "pt"})
        return replace(row, folder=str(folder)).load(target)
