"""Arithmetic on rows along the last axis, in float64, from which the laws of defects are built.

A row of a wide vocabulary is kept by cells, groups of ids with equal p and equal q: `sizes` [V] is the number of ids
of each, and a row has their mass together. Elsewhere every id is a cell of its own, of size 1. Most functions do not
depend on the sizes; those that depend on single ids, on their number or on small values take them as an argument.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float64]


def normalised(weights: Rows, otherwise: Rows) -> Rows:
    """weights / their sum; the row `otherwise` where nothing has mass."""
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), otherwise)


def log_sum(logs: Rows, axis: int) -> Rows:
    """log of the sum of exp, without overflow. scipy's takes twenty times as long on the small tables of a look."""
    most = logs.max(axis=axis, keepdims=True)
    total = np.log(np.exp(logs - most).sum(axis=axis, keepdims=True)) + most
    return np.asarray(total.squeeze(axis))


def ratio(p: Rows, q: Rows) -> Rows:
    """min(1, p / q), the acceptance of the ratio rule; 0 where p is 0."""
    return np.where(p >= q, (p > 0).astype(float), p / np.where(q > 0, q, 1.0))


def positive(weights: Rows) -> Rows:
    return np.maximum(weights, 0.0)


def residual(p: Rows, q: Rows) -> Rows:
    """(p - q)+ normalised; p where it is empty."""
    return normalised(positive(p - q), p)


def point(rows: Rows, sizes: Rows) -> Rows:
    """All mass on the heaviest id, ties to the lowest."""
    return np.asarray(np.arange(rows.shape[-1]) == (rows / sizes).argmax(-1)[..., None], dtype=float)


def tempered(rows: Rows, temperature: float, sizes: Rows) -> Rows:
    """rows^(1/T), normalised."""
    safe = np.where(rows > 0, rows / sizes, 1.0)
    return normalised(np.where(rows > 0, safe ** (1.0 / temperature), 0.0) * sizes, rows)


def top(rows: Rows, k: int, sizes: Rows) -> Rows:
    """The k heaviest ids, ties to the lowest, normalised; of the last cell as many as are left."""
    order = np.argsort(-rows / sizes, axis=-1, kind="stable")
    many = sizes[order]
    kept = np.clip(k - (np.cumsum(many, axis=-1) - many), 0, many) / many
    share = np.zeros_like(rows)
    np.put_along_axis(share, order, kept, axis=-1)
    return normalised(rows * share, rows)


def bfloat16(values: Rows) -> Rows:
    """Rounded to bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    rounded: Rows = kept.view(np.float32).astype(np.float64)
    return rounded


def float16(values: Rows) -> Rows:
    """Rounded to IEEE half precision, ties to even."""
    half: Rows = values.astype(np.float16).astype(np.float64)
    return half


def ratio_rule(q: Rows, accept: Rows, correction: Rows) -> Rows:
    """The law of the next token when x ~ q is kept with probability accept(x) and otherwise replaced by a draw from
    `correction`: q a + (1 - sum q a) r."""
    kept: Rows = q * accept
    law: Rows = kept + (1.0 - kept.sum(-1, keepdims=True)) * correction
    return law


def drafted_correction(q: Rows, accept: Rows, correction: Any) -> Rows:
    """The same where the replacement depends on the refused draft: `correction(x)` is the row after refusing x."""
    law = q * accept
    for x in range(q.shape[-1]):
        law = law + (q[..., x] * (1.0 - accept[..., x]))[..., None] * correction(x)
    return law
