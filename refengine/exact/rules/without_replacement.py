"""Candidates drawn without replacement (EAGLE-1's sampling tree; recursive rejection sampling, Jeon et al. 2024)."""

from collections.abc import Sequence

from refengine.exact.block import ROOT, Block, Round, drawn, row_after
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row, normalised, residual, without


def without_replacement(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Judge siblings in draw order by min(1, r(x) / q'(x)), q' being q renormalised over what was left at that draw.

    r starts as p at every node and becomes (r - q')+ renormalised at each rejection. Chains and trees; a list is
    shorter than k where q supports fewer than k tokens.
    """
    at, r = ROOT, row_after(p, ROOT)
    taken: list[int] = []  # the siblings already refused
    tokens: list[int] = []
    path: list[int] = []
    for j, x in enumerate(block.tokens):
        if block.parents[j] != at:
            continue
        q = drawn(block, j)
        for earlier in taken:
            q = without(q, earlier)
        q = normalised(q)
        if chance.accept(r[x], q[x], ("accept", len(path), j)):
            tokens.append(x)
            path.append(j)
            at, r, taken = j, row_after(p, j), []
        else:
            r = normalised(residual(r, q))
            taken.append(x)
    tokens.append(chance.choose(r, ("emit", len(path))))
    return Round(tuple(tokens), tuple(path))


CARD = Card(
    rule=without_replacement,
    source="EAGLE-1's sampling tree; Jeon et al. 2024",
    shape="tree",
    drawn="distinct",
    law="target",
)
