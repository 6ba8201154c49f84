"""What the batched rules do to rows. The tensor twin of `refengine.exact.row`.

Working rows are float64 and are not normalised: `left` travels with its total instead, because a quotient of two dyadic
numbers is not dyadic. On rows of integers / 2^k the products, differences and sums below are then exact as long as
their numerators stay under 2^53, that is for (siblings + 1) * k <= 53, and with a 24-bit uniform for 24 bits less.
"""

import torch
from torch import Tensor

from refengine.engine.sums import total


def at_token(weights: Tensor, x: Tensor) -> Tensor:
    """weights[b, x_b]; lanes whose x is NOTHING get an arbitrary entry. [B, V], int64 [B] -> [B]."""
    return weights.gather(1, x.clamp(min=0)[:, None])[:, 0]


def row_at(rows: Tensor, place: Tensor) -> Tensor:
    """Each lane's row at its place, as float64. [B, m, V], int64 [B] -> [B, V]."""
    return rows[torch.arange(rows.shape[0], device=rows.device), place].double()


def without(weights: Tensor, x: Tensor) -> Tensor:
    """The same weights with one token per lane taken out; lanes whose x is NOTHING lose an arbitrary one."""
    return weights.scatter(1, x.clamp(min=0)[:, None], 0.0)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """(p - q)+, not normalised: what the target wanted beyond what the draft supplied."""
    return (p - q).clamp(min=0.0)


def correction(p: Tensor, q: Tensor) -> Tensor:
    """What is emitted from, or judged next, after a refusal: (p - q)+, and p itself where that is nothing.

    Float rows sum to 1 only within rounding, so that a draft can be refused although no token wants more than it was
    supplied. Exact rows never get there.
    """
    rest = residual(p, q)
    return torch.where(total(rest)[:, None] > 0, rest, p)


def rescaled(weights: Tensor) -> tuple[Tensor, Tensor]:
    """The weights times the power of two (which is exact) that brings their mass into [1/2, 1), and that mass."""
    mass = total(weights)
    scale = torch.exp2(-torch.frexp(mass).exponent.double())
    return weights * scale[:, None], mass * scale
