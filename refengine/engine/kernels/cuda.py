"""The compiled rules on CUDA: the launches of `tile`. Under Triton's interpreter they take tensors of the CPU."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from refengine.engine.block import NOTHING, Block, Round
from refengine.engine.coins import MASK, Philox
from refengine.engine.kernels import tile, tile_chains, tile_trees

STORED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
LEVELS = 12  # of the tree over one tile; any number gives the same tokens
WARPS = 8
AT_ONCE = 1024  # lanes of one launch, each with two rows of its own where siblings are weighed


class Uniforms(NamedTuple):
    """What coins are made of: Philox's key and counters, or where they are given the uniforms themselves.

    accept float64 [B, n] by node, emit float64 [B, n + 1] by depth; starts int64 [B]: tokens before the round
    """

    key: tuple[int, int] | None
    requests: Tensor | None
    starts: Tensor | None
    accept: Tensor | None
    emit: Tensor | None


def serves(name: str, p: Tensor, q: Tensor | None) -> bool:
    """Whether there is a kernel of this rule for these rows."""
    known = p.dtype in STORED and (name not in WEIGHING or (q is not None and q.dtype in STORED))
    return name in RULES and known


def from_philox(coins: Philox, start: int | Tensor) -> Uniforms:
    """The coins of the round that starts after `start` tokens."""
    starts = torch.as_tensor(start, device=coins.requests.device).expand_as(coins.requests).contiguous()
    key = coins.seed & MASK, coins.seed >> 32
    return Uniforms(key, coins.requests.contiguous(), starts, None, None)


def given(accept: Tensor, emit: Tensor) -> Uniforms:
    """Uniforms by node and by depth, float64 [B, n] and [B, n + 1]."""
    return Uniforms(None, None, None, accept.contiguous(), emit.contiguous())


def verify(name: str, p: Tensor, block: Block, uniforms: Uniforms) -> Round | None:
    """The round of the rule; None where the block is not for it, about which the plain text has the words."""
    (lanes, places, vocabulary), n = p.shape, p.shape[1] - 1
    q = block.q if name in WEIGHING else p[:, 1:, :0]
    fitting = all(list(ids.shape) == [lanes, n] for ids in (block.tokens, block.parents))
    if q is None or not fitting or (name in WEIGHING and list(q.shape) != [lanes, n, vocabulary]):
        return None
    text, path = (block.tokens.new_full(shape, NOTHING) for shape in ((lanes, places), (lanes, n)))
    length = block.tokens.new_empty(lanes)
    RULES[name](
        *(t.contiguous() for t in (p, q, block.tokens, block.parents)), uniforms, text, path, length,
        PLACES=triton.next_power_of_2(places), ABOVE=(triton.cdiv(vocabulary, 1 << LEVELS) - 1).bit_length(),
    )  # fmt: skip
    return Round(text, path, length) if bool(length.all()) else None


def leviathan(
    p: Tensor, q: Tensor, tokens: Tensor, parents: Tensor, uniforms: Uniforms, text: Tensor, path: Tensor,
    length: Tensor, PLACES: int, ABOVE: int,
) -> None:  # fmt: skip
    """The one row that a lane emits from is summed by as many programs as it has tiles."""
    lanes, places, vocabulary = p.shape
    of_row = places - 1, vocabulary
    sums, shares = (p.new_empty(shape, dtype=torch.float64) for shape in ((lanes, 1 << ABOVE), (lanes,)))
    refused = p.new_empty(lanes, dtype=torch.int8)
    tile_chains.judge[(lanes,)](
        *(p, q, tokens, parents, uniforms, text, path, length, refused, shares, *of_row),
        PLACES=PLACES, num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    tile_chains.masses[(lanes, 1 << ABOVE)](
        *(p, q, length, refused, sums, *of_row), LEVELS=LEVELS, ABOVE=ABOVE, num_warps=WARPS, enable_fp_fusion=False
    )
    tile_chains.emit[(lanes,)](
        *(p, q, length, refused, shares, sums, text, *of_row),
        LEVELS=LEVELS, ABOVE=ABOVE, num_warps=WARPS, enable_fp_fusion=False,
    )  # fmt: skip


def a_lane_a_program(
    kernel: Any, p: Tensor, q: Tensor, tokens: Tensor, parents: Tensor, uniforms: Uniforms, *out: Tensor,
    keeps: bool = False, **sizes: Any,
) -> None:  # fmt: skip
    """The launches of a rule that needs one kernel; `keeps`: it works on rows of its own."""
    lanes, places, vocabulary = p.shape
    left = p.new_empty((min(lanes, AT_ONCE), 2, vocabulary if keeps else 0), dtype=torch.float64)
    for first in range(0, lanes, AT_ONCE):
        kernel[(min(AT_ONCE, lanes - first),)](
            *(p, q, tokens, parents, uniforms, *out, left, first, places - 1, vocabulary),
            **sizes, LEVELS=LEVELS, num_warps=WARPS, enable_fp_fusion=False,
        )  # fmt: skip


WEIGHING: dict[str, Callable[..., None]] = {  # those that read q
    "leviathan": leviathan,
    "block": partial(a_lane_a_program, tile_chains.block),
    "iid_candidates": partial(a_lane_a_program, tile_trees.siblings, keeps=True, DISTINCT=False),
    "without_replacement": partial(a_lane_a_program, tile_trees.siblings, keeps=True, DISTINCT=True),
}
RULES = WEIGHING | {
    "greedy": partial(a_lane_a_program, tile_trees.greedy),
    "agreement": partial(a_lane_a_program, tile_trees.agreement),
    "point_mass": partial(a_lane_a_program, tile_trees.point_mass),
}


def judgeable(p: Tensor, block: Block, tolerance: float) -> bool:
    """Whether `check.check_rows` has nothing to say of rows and a block of the right shapes; False where none says."""
    q, (lanes, places, vocabulary) = block.q, p.shape
    if p.dtype not in STORED or (q is not None and q.dtype not in STORED) or not p.numel():
        return False
    fine = torch.ones(1, dtype=torch.int8, device=p.device)
    tokens, parents = block.tokens.contiguous(), block.parents.contiguous()
    for rows, before in ((p, 1),) if q is None or places == 1 else ((p, 1), (q, 0)):
        tile.sound[(lanes, places - 1 + before)](
            *(rows.contiguous(), tokens, parents, fine, places - 1, vocabulary),
            BEFORE=before, TOLERANCE=tolerance, LEVELS=LEVELS, num_warps=WARPS,
        )  # fmt: skip
    return bool(fine)
