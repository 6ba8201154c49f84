"""Paths through a tree of drafted tokens, and the round that keeps one of them."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, Block, Round


def child(block: Block, at: Tensor, x: Tensor) -> Tensor:
    """The first candidate after each lane's node that is token x, else NOTHING. int64 [B]."""
    nodes = torch.arange(block.tokens.shape[1] + 1, device=at.device)
    match = (block.parents == at[:, None]) & (block.tokens == x[:, None])
    # What does not match counts as n, which stands for "none"; the spare column is there when a block is empty.
    first = torch.where(torch.nn.functional.pad(match, (0, 1)), nodes, nodes[-1]).amin(1)
    return torch.where(first < nodes[-1], first, NOTHING)


def mark(kept: Tensor, node: Tensor) -> Tensor:
    """`kept` with each lane's node set; NOTHING sets none. bool [B, n], int64 [B] -> bool [B, n]."""
    return kept | (torch.arange(kept.shape[1], device=kept.device) == node[:, None])


def ancestry(block: Block, node: Tensor) -> Tensor:
    """Which nodes lie between the root and each lane's node, that node included. bool [B, n]."""
    on_path = torch.zeros_like(block.tokens, dtype=torch.bool)
    for j in reversed(range(block.tokens.shape[1])):
        on_path[:, j] = node == j
        node = torch.where(on_path[:, j], block.parents[:, j], node)
    return on_path


def path_of(kept: Tensor) -> Tensor:
    """The kept nodes in order, root first, then NOTHING: bool [B, n] -> int64 [B, n]."""
    lanes, n = kept.shape
    nodes = torch.arange(n, device=kept.device).expand(lanes, n)
    slot = torch.where(kept, kept.cumsum(1) - 1, n)  # what is not kept goes into a spare slot that is cut off
    return torch.full((lanes, n + 1), NOTHING, device=kept.device).scatter(1, slot, nodes)[:, :n]


def emitted(block: Block, kept: Tensor, last: Tensor) -> Round:
    """The round that keeps the nodes `kept`, bool [B, n], and emits `last`, int64 [B], after them."""
    path, accepted = path_of(kept), kept.sum(1)
    tokens = torch.where(path == NOTHING, NOTHING, block.tokens.gather(1, path.clamp(min=0)))
    tokens = torch.nn.functional.pad(tokens, (0, 1), value=NOTHING).scatter(1, accepted[:, None], last[:, None])
    return Round(tokens, path, accepted + 1)
