"""The compiled rules on a CPU: tensors are handed to `lane` as they lie in memory, lanes are shared among threads."""

from collections.abc import Callable
from threading import Thread

import numpy as np
import torch
from torch import Tensor

from refengine.engine.block import NOTHING, Block, Round
from refengine.engine.coins import MASK, Philox
from refengine.engine.kernels import lane
from refengine.engine.kernels.lane import Uniforms

STORED = (torch.float32, torch.float64, torch.bfloat16)
SHARE = 1 << 16  # entries of rows below which a thread of its own costs more than it brings


def serves(name: str, p: Tensor, q: Tensor | None) -> bool:
    """Whether there is a kernel of this rule for these rows."""
    known = p.dtype in STORED and (name not in lane.WEIGHING or (q is not None and q.dtype in STORED))
    return name in lane.RULES and known


def from_philox(coins: Philox, start: int | Tensor) -> Uniforms:
    """The coins of the round that starts after `start` tokens."""
    requests = coins.requests.contiguous().numpy()
    starts = np.full_like(requests, start) if isinstance(start, int) else start.expand_as(coins.requests)
    none = np.empty((0, 0))
    return Uniforms(False, (coins.seed & MASK, coins.seed >> 32), requests, np.ascontiguousarray(starts), none, none)


def given(accept: Tensor, emit: Tensor) -> Uniforms:
    """Uniforms by node and by depth, float64 [B, n] and [B, n + 1]."""
    none = np.empty(0, dtype=np.int64)
    return Uniforms(True, (0, 0), none, none, accept.numpy(), emit.numpy())


def verify(name: str, p: Tensor, block: Block, uniforms: Uniforms) -> Round | None:
    """The round of the rule `name`; None where the block is not for it, about which the plain text has the words."""
    (lanes, places, vocabulary), drafts = p.shape, [p.shape[0], p.shape[1] - 1]
    q = block.q if name in lane.WEIGHING else None
    fitting = name not in lane.WEIGHING or (q is not None and list(q.shape) == [*drafts, vocabulary])
    if any(list(ids.shape) != drafts for ids in (block.tokens, block.parents)) or not fitting:
        return None
    arguments = *both(p, q), block.tokens.contiguous().numpy(), block.parents.contiguous().numpy()
    out, path = np.full((lanes, places), NOTHING), np.full(drafts, NOTHING)
    length = np.empty(lanes, np.int64)

    def judge(first: int, end: int) -> None:
        lane.RULES[name](first, end, *arguments, uniforms, out, path, length)

    shared(lanes, vocabulary, judge)
    return Round(*map(torch.from_numpy, (out, path, length))) if length.all() else None


def choose(coins: Philox, weights: Tensor, kind: int, place: int | Tensor, node: int | Tensor) -> Tensor | None:
    """`coins.choose` of rows [B, V] at a site of that kind; node is -1 where the site names no candidate."""
    lanes, vocabulary = weights.shape
    if weights.dtype not in STORED or not vocabulary or len(coins.requests) != lanes:
        return None
    requests, places, nodes = (numbers(n, lanes) for n in (coins.requests, place, node))
    rows, key, out = stored(weights), (coins.seed & MASK, coins.seed >> 32), np.empty(lanes, np.int64)

    def pick(first: int, end: int) -> None:
        lane.picks(first, end, rows, kind, requests, places, nodes, key, out)

    shared(lanes, vocabulary, pick)
    return torch.from_numpy(out)


def judgeable(p: Tensor, block: Block, tolerance: float) -> bool:
    """Whether `check.check_rows` has nothing to say of rows and a block of the right shapes; False where none says."""
    if p.dtype not in STORED or (block.q is not None and block.q.dtype not in STORED) or not p.numel():
        return False
    arguments = *both(p, block.q), block.tokens.contiguous().numpy(), block.parents.contiguous().numpy()
    fine = np.empty(len(p), np.bool_)
    shared(len(p), p[0].numel(), lambda first, end: lane.sound(first, end, *arguments, tolerance, fine))
    return bool(fine.all())


def stored(rows: Tensor) -> np.ndarray:
    """The rows without a copy where they are contiguous; bfloat16, which numpy lacks, as the bits it is made of."""
    rows = rows.detach().contiguous()
    return (rows.view(torch.uint16) if rows.dtype is torch.bfloat16 else rows).numpy()


def both(p: Tensor, q: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
    """The rows, those of q without a place where there are none."""
    held = stored(p)
    return held, np.empty((len(held), 0, held.shape[2]), held.dtype) if q is None else stored(q)


def numbers(given: int | Tensor, lanes: int) -> np.ndarray:
    """int64, one for each lane."""
    return np.full(lanes, given) if isinstance(given, int) else given.expand(lanes).contiguous().numpy()


def shared(lanes: int, size: int, work: Callable[[int, int], None]) -> None:
    """work(first, end) on equal shares of the lanes, each of `size` entries, in as many threads as torch may use.

    Threads are made for the call: a pool that outlives it would hang a process forked after.
    """
    count = max(1, min(torch.get_num_threads(), lanes, lanes * size // SHARE))
    edges = [lanes * k // count for k in range(count + 1)]
    others = [Thread(target=work, args=(edges[k], edges[k + 1])) for k in range(1, count)]
    for thread in others:
        thread.start()
    work(0, edges[1])
    for thread in others:
        thread.join()
