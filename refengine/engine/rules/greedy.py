"""Greedy verification, batched: follow the target's argmax as long as it was drafted."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import child, emitted, mark


def greedy(p: Tensor, block: Block, coins: Coins) -> Round:
    """Emit argmax p, ties to the lowest id; where a candidate equals it, go there. Chains and trees; no randomness."""
    kept = torch.zeros_like(block.tokens, dtype=torch.bool)
    at = torch.full((len(p),), ROOT, device=p.device)
    while True:
        best = row_after(p, at).argmax(-1)
        hit = child(block, at, best)
        if (hit == NOTHING).all():
            return emitted(block, kept, best)
        kept = mark(kept, hit)
        at = torch.where(hit == NOTHING, at, hit)
