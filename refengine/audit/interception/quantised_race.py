"""The law of an argmax over noise of few values: ties are won by the lowest id, and rare tokens may not win at all.

In half precision log p + Gumbel takes some thousand values. Two entries then tie at the top once in a few thousand
draws, and argmax gives every tie to the lower id: no exponential race, and not the row's law either. Every entry is a
step function of its own uniform k / 2^bits, so its steps are found by bisection on k, and
P(i wins) = sum_x P(x_i = x) prod_(j < i) P(x_j < x) prod_(j > i) P(x_j <= x) is exact.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from refengine.audit.interception.uniforms import Grid, Unmodelled
from refengine.evidence.rows import Rows

MOST_STEPS = 20_000  # more than half precision has between the smallest and the largest noise
START = 2048  # points that the steps are looked for between, before bisection
PROBES = [(i + 0.5) / 64 for i in range(64)]  # uniforms at which two races that answer alike are the same
Entries = Callable[[Tensor], Tensor]
_known: dict[bytes, list[float]] = {}  # every run of an enumeration meets the same few races


def coarse_weights(entries: Entries, owners: list[int], grids: list[Grid]) -> list[float]:
    """P(entry wins); `entries(table of uniforms)` gives x, whose entry i increases with uniform owners[i]."""
    size = len(grids) + 1
    race = b"".join(entries(torch.full((size,), u, dtype=torch.float64)).double().numpy().tobytes() for u in PROBES)
    if race not in _known:
        _known[race] = _weights(entries, owners, grids)
    return _known[race]


def _weights(entries: Entries, owners: list[int], grids: list[Grid]) -> list[float]:
    try:
        # In a thread of its own: inside the dispatch mode that intercepts, vmap is switched off.
        with ThreadPoolExecutor(1) as thread:
            many = torch.func.vmap(entries)
            steps = [thread.submit(_steps, many, owner, i, grids).result() for i, owner in enumerate(owners)]
    except NotImplementedError as error:
        raise Unmodelled(f"an argmax of random numbers that cannot be followed side by side ({error})") from error
    levels = np.unique(np.concatenate([values for values, _ in steps]))
    at_most = np.stack([_cdf(levels, *step) for step in steps])
    below = np.concatenate([np.zeros_like(at_most[:, :1]), at_most[:, :-1]], axis=1)
    return [
        float(((at_most[i] - below[i]) * below[:i].prod(0) * at_most[i + 1 :].prod(0)).sum())
        for i in range(len(owners))
    ]


def _steps(many: Entries, owner: int, i: int, grids: list[Grid]) -> tuple[Rows, NDArray[np.int64]]:
    """The values of entry i and the number of grid points up to the last that has each: [n], [n]."""
    bits = grids[owner].bits
    top = 1 << bits

    def x_at(k: NDArray[np.int64]) -> Rows:
        tables = torch.full((len(k), len(grids) + 1), 0.5, dtype=torch.float64)
        tables[:, owner] = torch.from_numpy(k / top)
        x: Rows = many(tables)[:, i].double().numpy()
        if np.isnan(x).any():
            raise Unmodelled("an argmax over what may be no number")
        return x

    ends = np.unique(np.exp2(np.linspace(0, bits, START)).astype(np.int64)) - 1  # dense where noise is steepest
    k = np.unique(np.concatenate([ends, top - 1 - ends]))
    x = x_at(k)
    while True:
        apart = np.flatnonzero((x[1:] != x[:-1]) & (k[1:] - k[:-1] > 1))
        if not len(apart):
            break
        if len(apart) > MOST_STEPS:
            raise Unmodelled("an argmax of random numbers that is not an exponential race")
        middle = (k[apart] + k[apart + 1]) // 2
        k, x = np.insert(k, apart + 1, middle), np.insert(x, apart + 1, x_at(middle))
    if (x[1:] < x[:-1]).any():
        raise Unmodelled("an argmax of random numbers that does not increase with them")
    last = np.flatnonzero(np.append(x[1:] != x[:-1], True))
    return x[last], np.append(k[last][:-1] + 1, top)


def _cdf(levels: Rows, values: Rows, points: NDArray[np.int64]) -> Rows:
    """P(x <= level)."""
    shares = np.concatenate([[0.0], points / points[-1]])
    return np.asarray(shares[np.searchsorted(values, levels, side="right")])
