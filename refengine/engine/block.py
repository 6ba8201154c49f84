"""The tensors that pass between drafter, rule and loop: the batched twins of `refengine.exact.block`.

`check_rows` and `check_chain` refuse what no rule can judge.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.engine.row import row_at
from refengine.exact.chance import Site

SUM_TOLERANCE = 1e-4  # float32 softmax over 152k tokens sums to 1 within about 1e-6; half precision does not get near

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


def check_rows(p: Tensor, block: Block) -> None:
    """Refuse what no rule can judge, with one line that names the fault. Places without a draft are not looked at.

    Shapes must be p [B, n + 1, V], tokens and parents int64 [B, n], q [B, n, V] or None; rows finite, not negative and
    summing to 1 within SUM_TOLERANCE; tokens inside the vocabulary; parents drafted, and before their children.
    """
    if p.dim() != 3 or not p.is_floating_point():
        raise ValueError(f"p must be float [B, n + 1, V], got {p.dtype} {list(p.shape)}")
    lanes, places, vocabulary = p.shape
    drafts = [lanes, places - 1]
    for name, ids in (("tokens", block.tokens), ("parents", block.parents)):
        if list(ids.shape) != drafts or ids.dtype != torch.int64:
            raise ValueError(
                f"{name} must be int64 {drafts} beside p {list(p.shape)}, got {ids.dtype} {list(ids.shape)}"
            )
    there = block.tokens != NOTHING
    _refuse(there & ((block.tokens < 0) | (block.tokens >= vocabulary)), f"its token is outside 0..{vocabulary - 1}")
    nodes = torch.arange(places - 1, device=p.device)
    _refuse(there & ((block.parents < ROOT) | (block.parents >= nodes)), "its parent does not come before it")
    parent_there = torch.nn.functional.pad(there, (1, 0), value=True).gather(
        1, block.parents.clamp(ROOT, places - 2) + 1
    )
    _refuse(there & ~parent_there, "its parent was not drafted")
    _check_distribution("p", p, torch.nn.functional.pad(there, (1, 0), value=True))
    if block.q is not None:
        if not block.q.is_floating_point() or list(block.q.shape) != [*drafts, vocabulary]:
            raise ValueError(f"q must be float {[*drafts, vocabulary]}, got {block.q.dtype} {list(block.q.shape)}")
        _check_distribution("q", block.q, there)


def _check_distribution(name: str, rows: Tensor, there: Tensor) -> None:
    mass = rows.double().sum(-1)
    for fault, where in (
        ("holds NaN or infinity", ~rows.isfinite().all(-1)),
        ("has negative mass", (rows < 0).any(-1)),
        ("does not sum to 1", (mass - 1).abs() > SUM_TOLERANCE),
    ):
        for lane, row in (there & where).nonzero().tolist():
            raise ValueError(f"row {row} of {name} in lane {lane} {fault} (its sum is {float(mass[lane, row]):.9g})")


def _refuse(where: Tensor, fault: str) -> None:
    for lane, node in where.nonzero().tolist():
        raise ValueError(f"node {node} in lane {lane}: {fault}")
