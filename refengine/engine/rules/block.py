"""Block verification, batched (Sun et al. 2024, Algorithm 2): the block is judged as a whole, from its far end."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, Block, Round, check_chain, drawn
from refengine.engine.coins import Coins
from refengine.engine.path import emitted
from refengine.engine.row import at_token, residual
from refengine.engine.sums import total


def prefix_weights(p: Tensor, block: Block) -> tuple[Tensor, Tensor]:
    """w_0 .. w_n as numerators and denominators, float64 [B, n + 1] each; a place without a draft keeps the last one.

    A draft that q cannot have drawn counts as q(x) -> 0: it passes iff p(x) > 0.
    """
    q = drawn(block)
    num = den = torch.ones(len(p), dtype=torch.float64, device=p.device)
    nums, dens = [num], [den]
    for i, x in enumerate(block.tokens.unbind(1)):
        there = x != NOTHING
        num = torch.where(there, num * at_token(p[:, i], x).double(), num)
        den = torch.where(there, den * at_token(q[:, i], x).double(), den)
        below = num < den
        scale = torch.exp2(-torch.frexp(den).exponent.double())  # a power of two: products of many q do not underflow
        num, den = torch.where(below, num * scale, num > 0), torch.where(below, den * scale, 1.0)
        nums.append(num)
        dens.append(den)
    return torch.stack(nums, 1), torch.stack(dens, 1)


def block(p: Tensor, block: Block, coins: Coins) -> Round:
    """Keep the longest prefix whose coin falls; then emit from (w p - q)+ after it, or from p after the whole block.

    With w = num / den, the residual is in proportion to (num p - den q)+; R / (R + 1 - w) becomes S / (S + den - num),
    where S is the sum of that.
    """
    check_chain(block)
    num, den = prefix_weights(p, block)
    drafted = (block.tokens != NOTHING).sum(1)
    q = drawn(block)
    length, last_row = torch.zeros_like(drafted), torch.zeros_like(p[:, 0], dtype=torch.float64)
    live = torch.ones_like(drafted, dtype=torch.bool)
    for kept in reversed(range(block.tokens.shape[1] + 1)):
        judged, whole = live & (kept <= drafted), drafted == kept
        row, n, d = p[:, kept].double(), num[:, kept], den[:, kept]
        supplied = q[:, kept].double() * d[:, None] if kept < q.shape[1] else torch.zeros_like(row)
        rest = residual(row * n[:, None], supplied)
        mass = total(rest)
        accepted = judged
        if kept > 0 and judged.any():
            odds = torch.where(whole, n, mass), torch.where(whole, d, mass + d - n)
            accepted = judged & coins.accept(*odds, ("accept", kept - 1))
        # Nothing is left over only where rounding refused a draft that no token wants more of: see row.correction.
        last_row = torch.where(accepted[:, None], torch.where((whole | (mass == 0))[:, None], row, rest), last_row)
        length = torch.where(accepted, kept, length)
        live = live & ~accepted
    kept_nodes = torch.arange(block.tokens.shape[1], device=length.device) < length[:, None]
    return emitted(block, kept_nodes, coins.choose(last_row, ("emit", length)))
