"""Deterministic candidates, one after the other (EAGLE-2/3, Lookahead, prompt lookup, any argmax drafter).

A candidate that was not drawn is a point mass on itself: the ratio rule with q = 1 at x. Its residual is p with x taken
out and renormalised. EAGLE's released code writes this as `qx = 1.0`, which is why that line is right.
"""

from collections.abc import Sequence

from refengine.exact.block import ROOT, Block, Round, row_after
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row, without


def point_mass(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Try the siblings in order: keep x with probability p(x), else take x out of p and renormalise. Chains and trees.

    A repeated sibling has no mass left and is refused. Lossless for every drafter that does not see the target's coins.
    """
    at, left = ROOT, row_after(p, ROOT)
    tokens: list[int] = []
    path: list[int] = []
    for j, x in enumerate(block.tokens):
        if block.parents[j] != at:
            continue
        if chance.accept(left[x], sum(left), ("accept", len(path), j)):
            tokens.append(x)
            path.append(j)
            at, left = j, row_after(p, j)
        else:
            left = without(left, x)
    tokens.append(chance.choose(left, ("emit", len(path))))
    return Round(tuple(tokens), tuple(path))


CARD = Card(
    rule=point_mass,
    source="EAGLE-2/3's released verification (qx = 1.0)",
    shape="tree",
    drawn=None,
    law="target",
)
