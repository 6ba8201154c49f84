"""Agreement, batched: accept a candidate iff it equals the target's own sample (DFlash, mlx-lm, lookahead samplers)."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import child, emitted, mark


def agreement(p: Tensor, block: Block, coins: Coins) -> Round:
    """Draw y ~ p and emit it; where a candidate equals y, go there. Chains and trees, drafted in any way."""
    kept = torch.zeros_like(block.tokens, dtype=torch.bool)
    at = torch.full((len(p),), ROOT, device=p.device)
    last = torch.full_like(at, NOTHING)
    live = torch.ones_like(at, dtype=torch.bool)
    for depth in range(p.shape[1]):
        y = coins.choose(row_after(p, at), ("emit", depth))
        last = torch.where(live, y, last)
        hit = torch.where(live, child(block, at, y), NOTHING)
        live = hit != NOTHING
        if not live.any():
            break
        kept = mark(kept, hit)
        at = torch.where(live, hit, at)
    return emitted(block, kept, last)
