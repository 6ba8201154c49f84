"""Greedy verification: follow the target's argmax as long as it was drafted."""

from collections.abc import Sequence

from refengine.exact.block import ROOT, Block, Round, row_after
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row, argmax


def greedy(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Emit argmax p, ties to the lowest id; where a candidate equals it, go there. Chains and trees; no randomness."""
    at = ROOT
    tokens: list[int] = []
    path: list[int] = []
    while True:
        best = argmax(row_after(p, at))
        tokens.append(best)
        hit = next((j for j in block.children(at) if block.tokens[j] == best), None)
        if hit is None:
            return Round(tuple(tokens), tuple(path))
        path.append(hit)
        at = hit


CARD = Card(
    rule=greedy,
    source="temperature to 0",
    shape="tree",
    drawn=None,
    law="argmax",
)
