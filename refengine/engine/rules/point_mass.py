"""Deterministic candidates, one after the other, batched (EAGLE-2/3, Lookahead, prompt lookup, any argmax drafter)."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import emitted
from refengine.engine.row import at_token, without
from refengine.engine.sums import total


def point_mass(p: Tensor, block: Block, coins: Coins) -> Round:
    """Try the siblings in order: keep x with probability p(x), else take x out of p and renormalise. Chains and trees.

    A repeated sibling has no mass left and is refused.
    """
    kept = torch.zeros_like(block.tokens, dtype=torch.bool)
    at = torch.full((len(p),), ROOT, device=p.device)
    left = row_after(p, at)
    for j, x in enumerate(block.tokens.unbind(1)):
        judged = (block.parents[:, j] == at) & (x != NOTHING)
        if not judged.any():
            continue
        accepted = judged & coins.accept(at_token(left, x), total(left), ("accept", kept.sum(1), j))
        refused = judged & ~accepted
        left = torch.where(refused[:, None], without(left, x), left)
        left = torch.where(accepted[:, None], p[:, j + 1].double(), left)
        at = torch.where(accepted, j, at)
        kept[:, j] = accepted
    return emitted(block, kept, coins.choose(left, ("emit", kept.sum(1))))
