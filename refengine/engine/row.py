"""What the batched rules do to rows, and the check that keeps bad rows out. The tensor twin of `refengine.exact.row`.

Working rows are float64 and are not normalised: `left` travels with its total instead, because a quotient of two dyadic
numbers is not dyadic. On rows of integers / 2^k the products, differences and sums below are then exact as long as
their numerators stay under 2^53, that is for (siblings + 1) * k <= 53, and with a 24-bit uniform for 24 bits less.
"""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block, Round
from refengine.engine.sums import total

SUM_TOLERANCE = 1e-4  # float32 softmax over 152k tokens sums to 1 within about 1e-6; half precision does not get near


def at_token(weights: Tensor, x: Tensor) -> Tensor:
    """weights[b, x_b]; lanes whose x is NOTHING get an arbitrary entry. [B, V], int64 [B] -> [B]."""
    return weights.gather(1, x.clamp(min=0)[:, None])[:, 0]


def row_at(rows: Tensor, place: Tensor) -> Tensor:
    """Each lane's row at its place, as float64. [B, m, V], int64 [B] -> [B, V]."""
    return rows[torch.arange(rows.shape[0], device=rows.device), place].double()


def row_after(p: Tensor, node: Tensor) -> Tensor:
    """Rows are given root first: p[:, 0] follows the committed tokens, p[:, j + 1] follows node j."""
    return row_at(p, node + 1)


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
