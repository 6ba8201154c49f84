"""The compiled rules on CUDA: the launches of `tile`. Under Triton's interpreter they take tensors of the CPU."""

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from refengine.engine.block import Block, Round
from refengine.engine.coins import MASK, Philox
from refengine.engine.kernels import tile

STORED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
RULES = ("leviathan",)
LEVELS = 12  # of the tree over one tile; any number gives the same tokens
TILE = 1 << LEVELS
WARPS = 8


class Uniforms(NamedTuple):
    """What coins are made of: Philox's key and counters, or with `given` the uniforms themselves.

    accept float64 [B, n] by node, emit float64 [B, n + 1] by depth; starts int64 [B]: tokens before the round
    """

    given: bool
    key: tuple[int, int]
    requests: Tensor
    starts: Tensor
    accept: Tensor
    emit: Tensor


def serves(name: str, p: Tensor, q: Tensor | None) -> bool:
    """Whether there is a kernel of this rule for these rows."""
    return name in RULES and p.dtype in STORED and q is not None and q.dtype in STORED


def from_philox(coins: Philox, start: int | Tensor) -> Uniforms:
    """The coins of the round that starts after `start` tokens."""
    starts = torch.as_tensor(start, device=coins.requests.device).expand_as(coins.requests).contiguous()
    key = coins.seed & MASK, coins.seed >> 32
    return Uniforms(False, key, coins.requests.contiguous(), starts, coins.requests, coins.requests)


def given(accept: Tensor, emit: Tensor) -> Uniforms:
    """Uniforms by node and by depth, float64 [B, n] and [B, n + 1]."""
    return Uniforms(True, (0, 0), accept, accept, accept.contiguous(), emit.contiguous())


def verify(name: str, p: Tensor, block: Block, uniforms: Uniforms) -> Round | None:
    """The round of the rule; None where the block is not for it, about which the plain text has the words."""
    (lanes, places, vocabulary), n = p.shape, p.shape[1] - 1
    fitting = all(list(ids.shape) == [lanes, n] for ids in (block.tokens, block.parents))
    if block.q is None or not fitting or list(block.q.shape) != [lanes, n, vocabulary]:
        return None
    p, q, tokens, parents = (t.contiguous() for t in (p, block.q, block.tokens, block.parents))
    tiles = triton.next_power_of_2(triton.cdiv(vocabulary, TILE))
    sums, shares = (p.new_empty(shape, dtype=torch.float64) for shape in ((lanes, tiles), (lanes,)))
    out, path, length = (tokens.new_empty(shape) for shape in ((lanes, places), (lanes, n), (lanes,)))
    refused = p.new_empty(lanes, dtype=torch.int8)
    tile.judge[(lanes,)](
        *(p, q, tokens, parents, *uniforms.key, uniforms.requests, uniforms.starts, uniforms.accept, uniforms.emit),
        *(out, path, length, refused, shares, n, vocabulary),
        GIVEN=uniforms.given, PLACES=triton.next_power_of_2(max(n, 1)), num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    tile.masses[(lanes, tiles)](p, q, length, refused, sums, n, vocabulary, TILE=TILE, LEVELS=LEVELS, num_warps=WARPS)
    tile.emit[(lanes,)](
        *(p, q, length, refused, shares, sums, out, n, vocabulary),
        TILE=TILE, LEVELS=LEVELS, TILES=tiles, ABOVE=tiles.bit_length() - 1, num_warps=WARPS, enable_fp_fusion=False,
    )  # fmt: skip
    return Round(out, path, length) if bool(length.all()) else None


def judgeable(p: Tensor, block: Block, tolerance: float) -> bool:
    """Whether `check.check_rows` has nothing to say of rows and a block of the right shapes; False where none says."""
    q, (lanes, places, vocabulary) = block.q, p.shape
    if p.dtype not in STORED or (q is not None and q.dtype not in STORED) or not p.numel():
        return False
    fine = torch.ones(1, dtype=torch.int8, device=p.device)
    tokens, parents = block.tokens.contiguous(), block.parents.contiguous()
    for rows, before in ((p, 1),) if q is None or places == 1 else ((p, 1), (q, 0)):
        tile.sound[(lanes, places - 1 + before)](
            *(rows.contiguous(), tokens, parents, fine, places - 1),
            BEFORE=before, TOLERANCE=tolerance, V=vocabulary, TILE=TILE, num_warps=WARPS,
        )  # fmt: skip
    return bool(fine)
