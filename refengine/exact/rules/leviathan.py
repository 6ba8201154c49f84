"""Speculative sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2)."""

from collections.abc import Sequence

from refengine.exact.block import Block, Round, check_chain, drawn
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row, residual


def leviathan(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Keep x_i with probability min(1, p_i(x_i) / q_i(x_i)); at the first rejection emit from (p_i - q_i)+.

    Chains only. When all are kept, one bonus token is drawn from the last row of p.
    """
    check_chain(block)
    for i, x in enumerate(block.tokens):
        q = drawn(block, i)
        if not chance.accept(p[i][x], q[x], ("accept", i)):
            correction = chance.choose(residual(p[i], q), ("emit", i))
            return Round((*block.tokens[:i], correction), tuple(range(i)))
    gamma = len(block.tokens)
    bonus = chance.choose(p[gamma], ("emit", gamma))
    return Round((*block.tokens, bonus), tuple(range(gamma)))


CARD = Card(
    rule=leviathan,
    source="Leviathan et al. 2023, Alg. 1; Chen et al. 2023, Alg. 2",
    shape="chain",
    drawn="iid",
    law="target",
)
