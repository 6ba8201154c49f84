"""Block verification (Sun et al. 2024, Algorithm 2): the block is judged as a whole, from its far end.

The weight of a prefix is w_0 = 1, w_i = min(1, w_{i-1} p(x_i) / q(x_i)). The longest prefix whose own coin falls is
kept: the whole block with probability w_gamma, a shorter one with R_i / (R_i + 1 - w_i), where R_i is the mass of
(w_i p - q)+ after it. It is as lossless as the ratio rule, and no round-lossless rule keeps more on average.
"""

from collections.abc import Sequence
from fractions import Fraction

from refengine.exact.block import Block, Round, check_chain, drawn
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row, residual


def prefix_weights(p: Sequence[Row], block: Block) -> list[Fraction]:
    """w_0 .. w_gamma. A draft that q cannot have drawn counts as q(x) -> 0: it passes iff p(x) > 0."""
    weights = [Fraction(1)]
    for i, x in enumerate(block.tokens):
        num, den = weights[-1] * p[i][x], drawn(block, i)[x]
        weights.append(num / den if num < den else Fraction(int(num > 0)))
    return weights


def block(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Keep the longest prefix whose coin falls; then emit from (w p - q)+ after it, or from p after the whole block."""
    check_chain(block)
    w, gamma = prefix_weights(p, block), len(block.tokens)
    left: Sequence[Fraction] = p[gamma]
    if gamma == 0 or chance.accept(w[gamma], 1, ("accept", gamma - 1)):
        return Round((*block.tokens, chance.choose(left, ("emit", gamma))), tuple(range(gamma)))
    for kept in reversed(range(gamma)):
        left = residual([w[kept] * px for px in p[kept]], drawn(block, kept))
        if kept == 0 or chance.accept(sum(left), sum(left) + 1 - w[kept], ("accept", kept - 1)):
            break
    return Round((*block.tokens[:kept], chance.choose(left, ("emit", kept))), tuple(range(kept)))


CARD = Card(
    rule=block,
    source="Sun et al. 2024, Alg. 2",
    shape="chain",
    drawn="iid",
    law="target",
)
