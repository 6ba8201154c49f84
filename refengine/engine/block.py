"""The tensors that pass between drafter, rule and loop: the batched twins of `refengine.exact.block`.

`check_chain` refuses what a rule of chains cannot judge; `check.check_rows` what no rule can.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.engine.row import row_at
from refengine.exact.chance import Site

ROOT = -1  # the parent of a first candidate
NOTHING = -1  # the token of a place where a lane has no draft, or has emitted nothing


@dataclass(frozen=True)
class Block:
    """Drafted candidates of B independent lanes.

    tokens   int64 [B, n]     token of node j; NOTHING where the lane drafted fewer than n
    parents  int64 [B, n]     parent node, ROOT for a first candidate; parents come before children
    q        float [B, n, V]  the row that node j was drawn from, before any sibling was; None: nothing was drawn
    sites    the site of each node's draw, () where nothing was drawn
    """

    tokens: Tensor
    parents: Tensor
    q: Tensor | None
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True)
class Round:
    """What one verification emits, per lane.

    tokens  int64 [B, d + 1]  accepted tokens, then the one that the draft did not decide, then NOTHING
    path    int64 [B, d]      accepted nodes, root first, then NOTHING
    length  int64 [B]         number of emitted tokens, at least 1
    """

    tokens: Tensor
    path: Tensor
    length: Tensor


def row_after(p: Tensor, node: Tensor) -> Tensor:
    """Rows are given root first: p[:, 0] follows the committed tokens, p[:, j + 1] follows node j."""
    return row_at(p, node + 1)


def drawn(block: Block) -> Tensor:
    """q; a rule that weighs p against q cannot judge deterministic candidates."""
    if block.q is None:
        raise ValueError("nothing was drawn, so there is no q to weigh p against: use point_mass")
    return block.q


def check_chain(block: Block) -> None:
    """Refuse a tree where a rule is defined on chains only."""
    chain = torch.arange(-1, block.tokens.shape[1] - 1, device=block.tokens.device)
    if bool(((block.parents != chain) & (block.tokens != NOTHING)).any()):
        raise ValueError("this rule judges chains only, and a block of this batch is a tree")
    if bool(((block.tokens[:, :-1] == NOTHING) & (block.tokens[:, 1:] != NOTHING)).any()):
        raise ValueError("a chain of this batch has a gap: a token after a place without one")
