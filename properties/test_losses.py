"""The published losses against values worked out by hand."""

import math
import runpy
from pathlib import Path

import torch

LOSSES = runpy.run_path(str(Path(__file__).parents[1] / "fixtures" / "train" / "losses.py"))
INF = float("inf")


def test_dart_is_an_annealed_divergence() -> None:
    """Kills weights that grow with depth, the reverse divergence, mass on tokens that cannot be drafted."""
    p = torch.tensor([[[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]]], dtype=torch.float64)
    q = torch.tensor([[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]], dtype=torch.float64)
    logits = q.log()  # the third token cannot be drafted, so that p's first row is (2/3, 1/3)
    first = 2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3)
    second = 0.75 * math.log(3) + 0.25 * math.log(1 / 3)
    assert abs(float(LOSSES["dart"](p, logits)) - (first + 0.6 * second)) < 1e-12
    twice = LOSSES["dart"](torch.cat((p, q)), torch.cat((logits, logits)), decay=0.5)
    assert abs(float(twice) - (first + 0.5 * second) / 2) < 1e-12
