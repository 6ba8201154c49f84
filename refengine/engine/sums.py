"""Sums of a row and the pick of a token, in the one order that every text of the engine adds in.

A row is the leaves of a binary tree, its tokens in order. Neighbours are added two by two, their sums two by two again,
up to the root, which is the row's total; a node without a right neighbour is passed up as it is. All of it in float64.
A pick goes down the same tree: left, or right and then past all of the mass that stands on the left.

So the result does not depend on the device, on the batch, or on how a kernel cuts a row into tiles: 2^k neighbours are
a subtree, and zeros appended to a row change nothing. The error of a total is below log2(V) roundings, where that of a
running sum is V. On dyadic rows nothing is rounded, and the pick is `exact.chance.choose_below`.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def pairs(weights: Tensor) -> tuple[list[Tensor], Tensor]:
    """The tree of [..., V], float64: neighbours from the leaves up, [..., V / 2, 2] to [..., 1, 2], and the root."""
    level, out = weights.double(), []
    while level.shape[-1] > 1:
        even = pad(level, (0, 1)) if level.shape[-1] % 2 else level
        out.append(even.reshape(*even.shape[:-1], even.shape[-1] // 2, 2))
        level = out[-1][..., 0] + out[-1][..., 1]
    return out, level[..., 0]


def total(weights: Tensor) -> Tensor:
    """The mass of each row, float64: [..., V] -> [...]."""
    return pairs(weights)[1]


def first_above(share: Tensor, weights: Tensor) -> Tensor:
    """The first token of each row whose cumulative weight is above share * total, -1 without mass. [B], [B, V] -> [B].

    Where only one side has mass the pick goes there, so that it ends at a token with weight whatever has been rounded.
    """
    nodes, root = pairs(weights)
    lanes = torch.arange(len(weights), device=weights.device)
    bar, before, at = share * root, torch.zeros_like(root), torch.zeros_like(lanes)
    for level in reversed(nodes):
        left, right = level[lanes, at].unbind(1)
        past_left = before + left
        goes_right = (bar >= past_left) & (right > 0)
        before = torch.where(goes_right, past_left, before)
        at = goes_right.add(at, alpha=2)
    return torch.where(root > 0, at, -1)
