"""Candidates drawn without replacement, batched (EAGLE-1's sampling tree; Jeon et al. 2024)."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round, drawn, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import emitted
from refengine.engine.row import at_token, correction, rescaled
from refengine.engine.sums import total


def without_replacement(p: Tensor, block: Block, coins: Coins) -> Round:
    """Judge siblings in draw order by min(1, r(x) / q'(x)), q' being q renormalised over what was left at that draw.

    With r = left / mass and q' = pool / total(pool), both sides are multiplied by mass * total(pool).
    """
    q = drawn(block)
    kept = torch.zeros_like(block.tokens, dtype=torch.bool)
    taken = torch.zeros_like(p[:, 0], dtype=torch.bool)  # the siblings already refused
    at = torch.full((len(p),), ROOT, device=p.device)
    left, mass = row_after(p, at), torch.ones_like(at, dtype=torch.float64)
    for j, x in enumerate(block.tokens.unbind(1)):
        judged = (block.parents[:, j] == at) & (x != NOTHING)
        if not judged.any():
            continue
        pool = q[:, j].double().where(~taken, 0.0)
        wanted, supplied = left * total(pool)[:, None], pool * mass[:, None]
        accepted = judged & coins.accept(at_token(wanted, x), at_token(supplied, x), ("accept", kept.sum(1), j))
        refused = judged & ~accepted
        rest, rest_mass = rescaled(correction(wanted, supplied))
        left = torch.where(refused[:, None], rest, left).where(~accepted[:, None], p[:, j + 1].double())
        mass = torch.where(refused, rest_mass, mass).where(~accepted, 1.0)
        taken = torch.where(refused[:, None], taken.scatter(1, x.clamp(min=0)[:, None], True), taken)
        taken = taken & ~accepted[:, None]
        at = torch.where(accepted, j, at)
        kept[:, j] = accepted
    return emitted(block, kept, coins.choose(left, ("emit", kept.sum(1))))
