"""Independent candidates, batched (SpecInfer, Miao et al. 2024, multi-step speculative sampling)."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round, drawn, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import emitted
from refengine.engine.row import at_token, correction, rescaled


def iid_candidates(p: Tensor, block: Block, coins: Coins) -> Round:
    """Judge each sibling by min(1, r(x) / q(x)); at a rejection r becomes (r - q)+ renormalised.

    r is kept as `left`, whose mass is `mass`: r(x) / q(x) = left(x) / (mass q(x)), and (r - q)+ is in proportion to
    (left - mass q)+. Duplicate siblings are separate trials.
    """
    q = drawn(block)
    kept = torch.zeros_like(block.tokens, dtype=torch.bool)
    at = torch.full((len(p),), ROOT, device=p.device)
    left, mass = row_after(p, at), torch.ones_like(at, dtype=torch.float64)
    for j, x in enumerate(block.tokens.unbind(1)):
        judged = (block.parents[:, j] == at) & (x != NOTHING)
        if not judged.any():
            continue
        supplied = q[:, j].double() * mass[:, None]
        accepted = judged & coins.accept(at_token(left, x), at_token(supplied, x), ("accept", kept.sum(1), j))
        refused = judged & ~accepted
        rest, rest_mass = rescaled(correction(left, supplied))
        left = torch.where(refused[:, None], rest, left).where(~accepted[:, None], p[:, j + 1].double())
        mass = torch.where(refused, rest_mass, mass).where(~accepted, 1.0)
        at = torch.where(accepted, j, at)
        kept[:, j] = accepted
    return emitted(block, kept, coins.choose(left, ("emit", kept.sum(1))))
