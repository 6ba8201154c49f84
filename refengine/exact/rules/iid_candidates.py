"""Independent candidates (SpecInfer, Miao et al. 2024, multi-step speculative sampling)."""

from collections.abc import Sequence

from refengine.exact.block import ROOT, Block, Round, drawn, row_after
from refengine.exact.card import Card
from refengine.exact.chance import Chance
from refengine.exact.row import Row, normalised, residual


def iid_candidates(p: Sequence[Row], block: Block, chance: Chance) -> Round:
    """Judge each sibling by min(1, r(x) / q(x)); at a rejection r becomes (r - q)+ renormalised.

    Siblings are independent draws from one q, and r starts as p at every node. A token that was drawn twice is judged
    twice: duplicates are separate trials, and merging them changes the law. On a chain this is the ratio rule.
    """
    at, r = ROOT, row_after(p, ROOT)
    tokens: list[int] = []
    path: list[int] = []
    for j, x in enumerate(block.tokens):
        if block.parents[j] != at:
            continue
        q = drawn(block, j)
        if chance.accept(r[x], q[x], ("accept", len(path), j)):
            tokens.append(x)
            path.append(j)
            at, r = j, row_after(p, j)
        else:
            r = normalised(residual(r, q))
    tokens.append(chance.choose(r, ("emit", len(path))))
    return Round(tuple(tokens), tuple(path))


CARD = Card(
    rule=iid_candidates,
    source="SpecInfer, Miao et al. 2024",
    shape="tree",
    drawn="iid",
    law="target",
)
