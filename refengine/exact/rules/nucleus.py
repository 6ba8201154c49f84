"""Medusa's nucleus mode (released code, `sampling='nucleus'`): lossy, although it samples.

Every leaf draws for itself, at every depth, one token from the top-p filtered row and goes on while it equals the
candidate; the longest leaf wins. So a node shared by several leaves gets several chances. And the draw that disagreed
is thrown away: the next token is drawn afresh (or is the argmax, with the released default `fast=True`).
"""

from collections.abc import Sequence
from fractions import Fraction

from refengine.exact.block import ROOT, Block, Round, row_after
from refengine.exact.card import Card, Loss
from refengine.exact.chance import Chance
from refengine.exact.path import ancestry
from refengine.exact.policy import top_p as keep_top_p
from refengine.exact.row import Row, argmax, normalised

TOP_P = Fraction(4, 5)  # as released


def nucleus(p: Sequence[Row], block: Block, chance: Chance, top_p: Fraction = TOP_P, fast: bool = False) -> Round:
    """Leaves in Medusa's order (last drafted first); ties in length go to the first of them."""
    filtered = [normalised(keep_top_p(top_p)(row, (), ())) for row in p]
    leaves = [j for j in range(len(block.tokens)) if not block.children(j)]
    best: tuple[int, ...] = ()
    for leaf in reversed(leaves):
        nodes = ancestry(block, leaf)
        kept = 0
        for depth, j in enumerate(nodes):
            y = chance.choose(row_after(filtered, block.parents[j]), ("agree", depth, leaf))
            if y != block.tokens[j]:
                break
            kept += 1
        if kept > len(best):
            best = nodes[:kept]
    last = row_after(filtered, best[-1] if best else ROOT)
    token = argmax(last) if fast else chance.choose(last, ("emit", len(best)))
    return Round((*(block.tokens[j] for j in best), token), best)


CARD = Card(
    rule=nucleus,
    source="Medusa released code, sampling='nucleus'",
    shape="tree",
    drawn=None,
    law=Loss(p=(5, 3, 2), tokens=(2, 1, 0), parents=(ROOT, ROOT, ROOT), tv="7/50", options={"top_p": "1"}),
    thresholds={"top_p": "3/4"},
)
