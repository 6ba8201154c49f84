"""Agreement: accept a candidate iff it equals the target's own sample (DFlash, mlx-lm, lookahead-style samplers)."""

from collections.abc import Sequence

from refengine.exact.block import ROOT, Block, Round, row_after
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row


def agreement(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Draw y ~ p and emit it; where a candidate equals y, go there. Chains and trees, drafted in any way.

    What is emitted is always the target's own draw, so the rule is lossless for every drafter that does not see the
    target's coins; it accepts sum p q where the ratio rule accepts sum min(p, q).
    """
    at = ROOT
    tokens: list[int] = []
    path: list[int] = []
    while True:
        y = chance.choose(row_after(p, at), ("emit", len(path)))
        tokens.append(y)
        hit = next((j for j in block.children(at) if block.tokens[j] == y), None)
        if hit is None:
            return Round(tuple(tokens), tuple(path))
        path.append(hit)
        at = hit


CARD = Card(
    rule=agreement,
    source="DFlash's released verification; acceptance sum p q",
    shape="tree",
    drawn=None,
    law="target",
)
