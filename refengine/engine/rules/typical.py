"""Typical acceptance, batched (Cai et al. 2024): lossy by design, no coin. Both forms of the exact text."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import ancestry, emitted
from refengine.exact.rules.typical import DELTA, EPSILON, INSIDE_LOG


def threshold(rows: Tensor, epsilon: float, delta: float, inside_log: float) -> Tensor:
    """min(epsilon, delta exp(-H)) of each row; `inside_log` is what the released code adds inside the logarithm."""
    entropy = -torch.special.xlogy(rows, rows + inside_log).sum(-1)
    return (delta * torch.exp(-entropy)).clamp(max=epsilon)


def typical(p: Tensor, block: Block, coins: Coins, epsilon: float = EPSILON, delta: float = DELTA) -> Round:
    """Medusa as released: strict `>`, 1e-5 inside the logarithm."""
    at, probability = _candidates(p, block)
    return longest_passing(p, block, probability > threshold(at, epsilon, delta, INSIDE_LOG), probability)


def typical_inclusive(p: Tensor, block: Block, coins: Coins, epsilon: float = EPSILON, delta: float = DELTA) -> Round:
    """The seed text's form: `>=`, the true entropy."""
    at, probability = _candidates(p, block)
    return longest_passing(p, block, probability >= threshold(at, epsilon, delta, 0.0), probability)


def _candidates(p: Tensor, block: Block) -> tuple[Tensor, Tensor]:
    """The row that judges each node, float64 [B, n, V], and the node's probability in it, [B, n]."""
    lanes = torch.arange(len(p), device=p.device)[:, None]
    rows = p[lanes, _parents(block) + 1].double()
    return rows, rows.gather(2, block.tokens.clamp(min=0)[:, :, None])[:, :, 0]


def _parents(block: Block) -> Tensor:
    """The parents; a place without a draft may name anything, and gets the root."""
    return block.parents.where(block.tokens != NOTHING, ROOT)


def longest_passing(p: Tensor, block: Block, passing: Tensor, probability: Tensor) -> Round:
    """The longest path whose every node passes, the likeliest of those, the last drafted of those; then the argmax."""
    (lanes, n), parents = block.tokens.shape, _parents(block)
    # Column j + 1 belongs to node j and column 0 to the root; depth -1 marks a node that is not reached.
    depth = torch.zeros((lanes, n + 1), dtype=torch.int64, device=p.device)
    likelihood = torch.ones((lanes, n + 1), dtype=torch.float64, device=p.device)
    best = torch.full((lanes,), ROOT, device=p.device)
    for j in range(n):
        up = parents[:, j, None] + 1
        reached = passing[:, j] & (block.tokens[:, j] != NOTHING) & (depth.gather(1, up)[:, 0] >= 0)
        depth[:, j + 1] = torch.where(reached, depth.gather(1, up)[:, 0] + 1, -1)
        likelihood[:, j + 1] = likelihood.gather(1, up)[:, 0] * probability[:, j]
        champion = best[:, None] + 1
        longer = depth[:, j + 1] - depth.gather(1, champion)[:, 0]
        likelier = likelihood[:, j + 1] >= likelihood.gather(1, champion)[:, 0]
        best = torch.where((longer > 0) | ((longer == 0) & likelier), j, best)
    return emitted(block, ancestry(block, best), row_after(p, best).argmax(-1))
