"""Checks of what the batched rules do to rows, and of the check that keeps bad rows out."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from refengine.bugs.checks.chances import Case, first, refusal, refused
from refengine.bugs.checks.violation import Violation
from refengine.engine import row, sums
from refengine.engine.block import Block, check_chain, drawn
from refengine.engine.check import check_rows

NAN = float("nan")


def good() -> tuple[Tensor, Block]:
    """Two lanes, three places: a chain of two, and one draft with two places left empty (which hold NaN)."""
    p = torch.full((2, 4, 2), 0.5)
    p[1, 2:] = NAN
    q = torch.full((2, 3, 2), 0.5)
    q[1, 1:] = NAN
    q[0, 2] = NAN
    p[0, 3] = NAN
    tokens = torch.tensor([[0, 1, -1], [1, -1, -1]])
    return p, Block(tokens, torch.tensor([[-1, 0, 9], [-1, 0, 1]]), q)


def refusals() -> Violation | None:
    """Bad rows, tokens, parents and shapes are refused with a line naming the fault; empty places are not read."""
    return first(_refusals())


def _refusals() -> Iterator[Case]:
    yield "good rows", refusal(lambda: check_rows(*good())), ""
    p, block = good()
    yield "good rows without q", refusal(lambda: check_rows(p, Block(block.tokens, block.parents, None))), ""
    faults: list[tuple[str, str, tuple[int, ...], float]] = [
        ("row 1 of p in lane 0 holds NaN", "p", (0, 1, 0), NAN),
        ("row 2 of p in lane 0 holds NaN", "p", (0, 2, 1), float("inf")),
        ("row 0 of p in lane 1 does not sum", "p", (1, 0, 0), 0.5002),
        ("row 1 of q in lane 0 does not sum", "q", (0, 1, 0), 0.4998),
        ("row 0 of q in lane 1 holds NaN", "q", (1, 0, 1), NAN),
        ("row 1 of p in lane 1 has negative mass", "p", (1, 1, 0), -0.5),
        ("node 1 in lane 0: its token is outside 0..1", "tokens", (0, 1), 2),
        ("node 0 in lane 1: its token is outside 0..1", "tokens", (1, 0), -2),
        ("node 1 in lane 0: its parent does not come before it", "parents", (0, 1), 1),
        ("node 1 in lane 0: its parent does not come before it", "parents", (0, 1), 2),
        ("node 0 in lane 1: its parent does not come before it", "parents", (1, 0), -2),
    ]
    for words, name, where, value in faults:
        p, block = good()
        parts: dict[str, Any] = {"p": p, "q": block.q, "tokens": block.tokens, "parents": block.parents}
        parts[name][where] = value
        yield refused(lambda: check_rows(p, block), words)  # noqa: B023
    p, block = good()
    within: Any = p.clone()
    within[0, 0, 0] += 0.9e-4
    yield "a sum that is off by less than the tolerance", refusal(lambda: check_rows(within, block)), ""
    within = p.clone()  # the sum is 1 + 838.6 * 2^-23: the nearest float32, 1 + 839 * 2^-23, is beyond the tolerance
    within[0, 0] = torch.tensor([0.125 + 2.0**-26, 0.875 + 838.5 * 2.0**-23])
    yield "a sum that float64 keeps within the tolerance", refusal(lambda: check_rows(within, block)), ""
    orphan = Block(torch.tensor([[-1, 1, -1], [1, -1, -1]]), block.parents, block.q)
    yield refused(lambda: check_rows(p, orphan), "node 1 in lane 0: its parent was not drafted")
    shapes: list[tuple[str, Any, Any]] = [
        ("p must be float [B, n + 1, V]", p[0], block),
        ("p must be float [B, n + 1, V]", p.long(), block),
        ("tokens must be int64 [2, 3]", p, Block(block.tokens[:, :2], block.parents, block.q)),
        ("tokens must be int64 [2, 3]", p, Block(block.tokens.int(), block.parents, block.q)),
        ("parents must be int64 [2, 3]", p, Block(block.tokens, block.parents[:1], block.q)),
        ("parents must be int64 [2, 3]", p, Block(block.tokens, block.parents.double(), block.q)),
        ("q must be float [2, 3, 2]", p, Block(block.tokens, block.parents, torch.ones(2, 2, 2))),
        ("q must be float [2, 3, 2]", p, Block(block.tokens, block.parents, torch.ones(2, 3, 2, dtype=torch.long))),
    ]
    for words, rows, drafted in shapes:
        yield refused(lambda r=rows, b=drafted: check_rows(r, b), words)  # type: ignore[misc]
    flat = torch.tensor([[0, 1, 0]])
    yield "a chain", refusal(lambda: check_chain(Block(flat, torch.tensor([[-1, 0, 1]]), None))), ""
    yield refused(lambda: check_chain(Block(flat, torch.tensor([[-1, -1, 1]]), None)), "judges chains only")
    gap = Block(torch.tensor([[0, -1, 1]]), torch.tensor([[-1, 0, 1]]), None)
    yield refused(lambda: check_chain(gap), "a chain of this batch has a gap")
    late = Block(torch.tensor([[-1, 0, -1]]), torch.tensor([[-1, 0, 1]]), None)
    yield refused(lambda: check_chain(late), "a chain of this batch has a gap")
    yield (
        "a shorter chain",
        refusal(lambda: check_chain(Block(torch.tensor([[0, -1]]), torch.tensor([[-1, 7]]), None))),
        "",
    )
    yield refused(lambda: drawn(Block(flat, flat, None)), "there is no q")


def rows() -> Violation | None:
    """Residuals, corrections and scales of float rows, by hand: also where rounding leaves nothing over."""
    return first(_rows())


def _rows() -> Iterator[Case]:
    a, b = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.25, 0.0, 0.75]])
    yield "residual", row.residual(a, b).tolist(), [[0.25, 0.5, 0.0]]
    yield "correction", row.correction(a, b).tolist(), [[0.25, 0.5, 0.0]]
    yield "correction where nothing is left", row.correction(a, a + 0.1).tolist(), a.tolist()
    scaled, mass = row.rescaled(torch.tensor([[3.0, 1.0], [2.0**-200, 0.0]], dtype=torch.float64))
    yield "rescaled", (scaled.tolist(), mass.tolist()), ([[0.375, 0.125], [0.5, 0.0]], [0.5, 0.5])
    yield "total of rows of rows", sums.total(torch.tensor([[[1.0, 2.0], [0.0, 4.0]]])).tolist(), [[3.0, 4.0]]
    yield "total", sums.total(torch.tensor([[1.0, 2.0], [0.0, 4.0]])).tolist(), [3.0, 4.0]
