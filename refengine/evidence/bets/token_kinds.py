"""Cells: at most 16 groups of tokens per site, fixed by (p, q) before any draw."""

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.rows import Rows

CELLS = 16
SMALL_VOCABULARY = 8  # up to it every token is a cell of its own
KINDS = ("p<q", "p>q", "p=q", "draft's argmax", "target's argmax", "first id", "last id", "even ids", "rare in p")
RARE_MASS = 0.01


def cells(p: Rows, q: Rows) -> NDArray[np.int64]:
    """The cell of every token: p, q [..., V] -> int64 [..., V] below CELLS. Give q = p where there is no draft."""
    v = p.shape[-1]
    if v <= SMALL_VOCABULARY:
        return np.broadcast_to(np.arange(v), p.shape).astype(np.int64)
    cell = np.where(p < q, 0, np.where(p > q, 1, 2)) * 4 + 4  # three signs, four levels each
    rank = np.argsort(np.argsort(-p, axis=-1, kind="stable"), axis=-1, kind="stable")
    cell = cell + np.minimum(3, rank * 4 // v)
    cell[..., 0], cell[..., -1] = 0, 1
    np.put_along_axis(cell, p.argmax(-1)[..., None], 2, axis=-1)
    np.put_along_axis(cell, q.argmax(-1)[..., None], 3, axis=-1)
    return np.asarray(cell, dtype=np.int64)


def related(p: Rows, q: Rows) -> NDArray[np.int64]:
    """Cells with one meaning whatever the rows: the sign of p - q, times argmax of p, of q, or the third of the ranks
    of p. For rows that change from round to round, where a token id means nothing."""
    v = p.shape[-1]
    rank = np.argsort(np.argsort(-p, axis=-1, kind="stable"), axis=-1, kind="stable")
    level = 2 + np.minimum(2, rank * 3 // v)
    np.put_along_axis(level, q.argmax(-1)[..., None], 1, axis=-1)
    np.put_along_axis(level, p.argmax(-1)[..., None], 0, axis=-1)
    return np.asarray(np.where(p < q, 0, np.where(p > q, 1, 2)) * 5 + level, dtype=np.int64)


def kinds(p: Rows, q: Rows) -> NDArray[np.bool_]:
    """Membership in each of KINDS, which overlap: [len(KINDS), ..., V]. The tilting bets are on them."""
    ids = np.broadcast_to(np.arange(p.shape[-1]), p.shape)
    return np.stack(
        [
            p < q,
            p > q,
            p == q,
            ids == q.argmax(-1)[..., None],
            ids == p.argmax(-1)[..., None],
            ids == 0,
            ids == p.shape[-1] - 1,
            ids % 2 == 0,
            p < RARE_MASS,
        ]
    )
