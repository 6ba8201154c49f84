"""Typical acceptance (Cai et al. 2024): lossy by design. A candidate passes when it is probable enough; no coin.

Two forms, because the paper-style statement and the released code differ:

* `typical` is Medusa as released (temperature > 0, `fast=True`): p(x) > min(epsilon, delta exp(-H)), the inequality
  strict, H = -sum p log(p + 1e-5), epsilon = 0.09, delta = 0.3. Of the longest passing paths the likeliest wins; among
  equally likely ones the one drafted last (the released retrieve rows run from the last leaf to the first). What is
  emitted after it, also when nothing passes, is the argmax: the next round's root, greedy at any temperature.
* `typical_inclusive` is the form of the seed text: p(x) >= min(epsilon, delta exp(-H)) with the true entropy.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from refengine.exact.block import ROOT, Block, Round, row_after
from refengine.exact.card import Card, Loss
from refengine.exact.chance import Chance
from refengine.exact.row import Row, argmax

# Medusa as released; the last is what it adds inside the logarithm.
EPSILON, DELTA, INSIDE_LOG = 0.09, 0.3, 1e-5


def threshold(row: Row, epsilon: float, delta: float, inside_log: float) -> float:
    """min(epsilon, delta exp(-H)); `inside_log` is what the released code adds inside the logarithm."""
    entropy = -sum(float(px) * math.log(float(px) + inside_log) for px in row if px > 0)
    return min(epsilon, delta * math.exp(-entropy))


def typical(p: Sequence[Row], block: Block, chance: Chance, epsilon: float = EPSILON, delta: float = DELTA) -> Round:
    """Medusa as released: strict `>`, 1e-5 inside the logarithm."""
    passing = [
        row_after(p, parent)[x] > threshold(row_after(p, parent), epsilon, delta, INSIDE_LOG)
        for x, parent in zip(block.tokens, block.parents, strict=True)
    ]
    return longest_passing(p, block, passing)


def typical_inclusive(
    p: Sequence[Row], block: Block, chance: Chance, epsilon: float = EPSILON, delta: float = DELTA
) -> Round:
    """The seed text's form: `>=`, the true entropy."""
    passing = [
        row_after(p, parent)[x] >= threshold(row_after(p, parent), epsilon, delta, 0.0)
        for x, parent in zip(block.tokens, block.parents, strict=True)
    ]
    return longest_passing(p, block, passing)


def longest_passing(p: Sequence[Row], block: Block, passing: Sequence[bool]) -> Round:
    """The longest path whose every node passes, the likeliest of those, the last drafted of those; then the argmax."""
    paths: dict[int, tuple[int, ...]] = {ROOT: ()}
    likelihood = {ROOT: Fraction(1)}
    for j, (x, parent) in enumerate(zip(block.tokens, block.parents, strict=True)):
        if passing[j] and parent in paths:
            paths[j] = (*paths[parent], j)
            likelihood[j] = likelihood[parent] * row_after(p, parent)[x]
    best = max(paths, key=lambda j: (len(paths[j]), likelihood[j], j))
    return Round((*block.path(best), argmax(row_after(p, best))), paths[best])


THRESHOLDS = {"epsilon": "1/4", "delta": "9"}
LOSS = Loss(p=(6, 4), tokens=(1,), parents=(ROOT,), tv="3/5")
RELEASED = Card(
    rule=typical,
    source="Medusa released code, sampling='typical'",
    shape="tree",
    drawn=None,
    law=LOSS,
    thresholds=THRESHOLDS,
)
INCLUSIVE = Card(
    rule=typical_inclusive,
    source="typical acceptance as the EAGLE notes state it (>=, the true entropy)",
    shape="tree",
    drawn=None,
    law=LOSS,
    thresholds=THRESHOLDS,
)
