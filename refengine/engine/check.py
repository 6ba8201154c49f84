"""What no rule can judge is refused before one sees it, with one line that names the fault."""

import torch
from torch import Tensor

from refengine.engine.block import NOTHING, ROOT, Block
from refengine.engine.kernels import kernels

SUM_TOLERANCE = 1e-4  # float32 softmax over 152k tokens sums to 1 within about 1e-6; half precision does not get near
AT_ONCE = 1 << 22  # entries of rows that are looked at together, in float64


def check_rows(p: Tensor, block: Block) -> None:
    """Refuse what no rule can judge, with one line that names the fault. Places without a draft are not looked at.

    Shapes must be p [B, n + 1, V], tokens and parents int64 [B, n], q [B, n, V] or None; rows finite, not negative and
    summing to 1 within SUM_TOLERANCE; tokens inside the vocabulary; parents drafted, and before their children.
    """
    _check_shapes(p, block)
    here = kernels(p.device.type)
    if here is not None and here.judgeable(p, block, SUM_TOLERANCE):
        return
    there = block.tokens != NOTHING
    _check_ids(block, there, *p.shape[1:])
    _check_distribution("p", p, torch.nn.functional.pad(there, (1, 0), value=True))
    if block.q is not None:
        _check_distribution("q", block.q, there)


def check_row(row: Tensor) -> None:
    """The same of a single row p [V], after which nothing was drafted."""
    if row.dim() != 1 or not row.is_floating_point():
        raise ValueError(f"p must be float [V], got {row.dtype} {list(row.shape)}")
    none = row.new_empty((1, 0), dtype=torch.int64)
    check_rows(row[None, None], Block(none, none, None))


def _check_shapes(p: Tensor, block: Block) -> None:
    if p.dim() != 3 or not p.is_floating_point():
        raise ValueError(f"p must be float [B, n + 1, V], got {p.dtype} {list(p.shape)}")
    lanes, places, vocabulary = p.shape
    drafts, q = [lanes, places - 1], block.q
    for name, ids in (("tokens", block.tokens), ("parents", block.parents)):
        if list(ids.shape) != drafts or ids.dtype != torch.int64:
            raise ValueError(
                f"{name} must be int64 {drafts} beside p {list(p.shape)}, got {ids.dtype} {list(ids.shape)}"
            )
    if q is not None and (not q.is_floating_point() or list(q.shape) != [*drafts, vocabulary]):
        raise ValueError(f"q must be float {[*drafts, vocabulary]}, got {q.dtype} {list(q.shape)}")


def _check_ids(block: Block, there: Tensor, places: int, vocabulary: int) -> None:
    _refuse(there & ((block.tokens < 0) | (block.tokens >= vocabulary)), f"its token is outside 0..{vocabulary - 1}")
    nodes = torch.arange(places - 1, device=there.device)
    _refuse(there & ((block.parents < ROOT) | (block.parents >= nodes)), "its parent does not come before it")
    parent_there = torch.nn.functional.pad(there, (1, 0), value=True).gather(
        1, block.parents.clamp(ROOT, places - 2) + 1
    )
    _refuse(there & ~parent_there, "its parent was not drafted")


def _check_distribution(name: str, rows: Tensor, there: Tensor) -> None:
    if rows.numel() == 0:
        return
    lanes = max(1, AT_ONCE // rows[0].numel())
    for start in range(0, len(rows), lanes):
        part = rows[start : start + lanes].double()
        mass, least = part.sum(-1), part.amin(-1)
        sound = ((mass - 1).abs() <= SUM_TOLERANCE) & (least >= 0)  # neither holds for a NaN
        for lane, row in (there[start : start + lanes] & ~sound).nonzero().tolist():
            fault = "has negative mass" if least[lane, row] < 0 else "does not sum to 1"
            fault = fault if part[lane, row].isfinite().all() else "holds NaN or infinity"
            fault += f" (its sum is {float(mass[lane, row]):.9g})"
            raise ValueError(f"row {row} of {name} in lane {start + lane} {fault}")


def _refuse(where: Tensor, fault: str) -> None:
    for lane, node in where.nonzero().tolist():
        raise ValueError(f"node {node} in lane {lane}: {fault}")
