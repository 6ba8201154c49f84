"""Speculative sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2), batched."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, Block, Round, check_chain, drawn
from refengine.engine.coins import Coins
from refengine.engine.path import emitted
from refengine.engine.row import at_token, correction, row_at


def leviathan(p: Tensor, block: Block, coins: Coins) -> Round:
    """Keep x_i with probability min(1, p_i(x_i) / q_i(x_i)); at the first rejection emit from (p_i - q_i)+.

    Chains only. When all are kept, one bonus token is drawn from the lane's last row of p.
    """
    check_chain(block)
    q = drawn(block)
    kept = torch.zeros_like(block.tokens, dtype=torch.bool)
    live = torch.ones(len(p), dtype=torch.bool, device=p.device)
    refused = ~live
    for i, x in enumerate(block.tokens.unbind(1)):
        live = live & (x != NOTHING)
        if not live.any():
            break
        accepted = coins.accept(at_token(p[:, i], x), at_token(q[:, i], x), ("accept", i))
        refused = refused | (live & ~accepted)
        kept[:, i] = live = live & accepted
    depth = kept.sum(1)
    left = row_at(p, depth)
    left[refused] = correction(left[refused], q[refused, depth[refused]].double())
    return emitted(block, kept, coins.choose(left, ("emit", depth)))
