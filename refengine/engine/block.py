"""The tensors that pass between drafter, rule and loop: the batched twins of `refengine.exact.block`."""

from dataclasses import dataclass

from torch import Tensor

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
