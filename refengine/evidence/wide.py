"""The laws of defects at rows of a wide vocabulary, which are kept by cells: groups of ids with equal p and equal q.

Most laws do not see that a cell is many ids: they say the same of it whole and in parts, and stand as they are. Those
that look at single ids, at how many there are or at small values are computed from what one id has. Where neither is so
the law says p, and no bet is placed.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.alternatives import EPSILON, alternatives
from refengine.evidence.rows import (
    Rows,
    bfloat16,
    float16,
    normalised,
    point,
    positive,
    ratio,
    ratio_rule,
    residual,
    tempered,
)

SAME = 1e-9  # between a law of cells and of their parts, both in float64


def laws(p: Rows, q: Rows, sizes: NDArray[np.int64] | None) -> dict[str, Rows]:
    """name of the defect -> its law at every place, `sizes` [cells] saying how many ids each has where rows are kept by
    cells."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return alternatives(p, q) if sizes is None else _by_cells(p, q, sizes)


def _by_cells(p: Rows, q: Rows, sizes: NDArray[np.int64]) -> dict[str, Rows]:
    whole, sized = alternatives(p, q), dict(_sized(p, q, sizes))
    parts = np.minimum(sizes, 2 + np.arange(len(sizes)))  # unlike ones, so that nothing cancels
    first = np.cumsum(parts) - parts
    split = alternatives(*(np.repeat(rows / parts, parts, axis=-1) for rows in (p, q)))
    for name, law in whole.items():
        apart = np.abs(np.add.reduceat(split[name], first, axis=-1) - law).max(-1, keepdims=True)
        whole[name] = sized.get(name, np.where(apart < SAME, law, p))
    return whole


def _sized(p: Rows, q: Rows, sizes: NDArray[np.int64]) -> Iterator[tuple[str, Rows]]:
    """Laws that depend on what one id has."""
    judged, bonus = p[:, :-1], p[:, -1:]
    accept, r = ratio(judged, q), residual(judged, q)
    even = sizes / sizes.sum()

    def verified(law: Rows) -> Rows:
        return np.concatenate([law, bonus], axis=1)

    def corrected(correction: Rows) -> Rows:
        return verified(ratio_rule(q, accept, correction))

    def heaviest(rows: Rows) -> Rows:
        return point(rows / sizes)

    yield "accepted with p instead of p/q", verified(ratio_rule(q, judged / sizes, r))
    each = judged / sizes
    entropy = -(judged * np.log(np.where(each > 0, each, 1.0))).sum(-1, keepdims=True)
    typical = (each > np.minimum(0.09, 0.3 * np.exp(-entropy))).astype(float)
    yield "accepted by a threshold (typical acceptance)", verified(ratio_rule(q, typical, r))
    yield "the ratio's q is at least 1e-5", verified(ratio_rule(q, ratio(judged, np.maximum(q, EPSILON * sizes)), r))
    yield "the ratio's p is at least 1e-5", verified(ratio_rule(q, ratio(np.maximum(judged, EPSILON * sizes), q), r))
    yield "the residual has 1e-5 added", corrected(normalised(positive(judged - q) + EPSILON * sizes, judged))
    yield "corrected uniformly", corrected(np.broadcast_to(even, judged.shape))
    yield "corrected uniformly on the support of p", corrected(normalised((judged > 0) * even, judged))
    yield "corrected by the argmax of the residual", corrected(heaviest(r))
    yield "corrected by the argmax of p", corrected(heaviest(judged))
    yield "the bonus is the argmax", np.concatenate([judged, heaviest(bonus)], axis=1)
    yield "the bonus is uniform", np.concatenate([judged, np.broadcast_to(even, bonus.shape)], axis=1)
    yield "every pick is the argmax", np.concatenate([ratio_rule(q, accept, heaviest(r)), heaviest(bonus)], axis=1)
    yield "drafted by argmax, weighed against q", verified(ratio_rule(heaviest(q), accept, r))
    yield "drafted from top 2, weighed against q", verified(ratio_rule(_top(q, sizes, 2), accept, r))
    for least in (0.1, 0.3):
        kept = q / sizes >= least
        refused = (q * kept * (1.0 - accept)).sum(-1, keepdims=True)
        dropped = (q * ~kept).sum(-1, keepdims=True)
        yield f"drafts with q < {least:g} are dropped", verified(q * accept * kept + refused * r + dropped * judged)
    for t in (0.5, 0.8, 0.95, 1.05, 1.25, 2.0):
        yield f"the target has temperature {t:g}", normalised(tempered(p / sizes, t) * sizes, p)
    for k in (1, 2, 50):
        yield f"the target is cut to its top {k}", _top(p, sizes, k)
    for name, rounded in (("bfloat16", bfloat16), ("float16", float16)):
        low_p, low_q = rounded(judged / sizes), rounded(q / sizes)
        left = normalised(positive(rounded(low_p - low_q)) * sizes, judged)
        low_bonus = normalised(rounded(bonus / sizes) * sizes, bonus)
        whole = ratio_rule(q, rounded(ratio(low_p, low_q)), left)
        yield f"everything is in {name}", np.concatenate([whole, low_bonus], axis=1)
        yield f"the residual is taken of {name} rows", corrected(left)
        yield (
            f"the residual is rounded to {name}",
            corrected(normalised(rounded(positive(judged - q) / sizes) * sizes, judged)),
        )
        if name == "bfloat16":
            yield "the ratio takes bfloat16 rows", verified(ratio_rule(q, ratio(low_p, low_q), r))
            yield (
                "the normalised residual is rounded to bfloat16",
                corrected(normalised(rounded(r / sizes) * sizes, judged)),
            )


def _top(rows: Rows, sizes: NDArray[np.int64], k: int) -> Rows:
    """The k heaviest ids, of the last cell that they reach as many as are left."""
    order = np.argsort(-rows / sizes, axis=-1, kind="stable")
    many = sizes[order]
    kept = np.clip(k - (np.cumsum(many, axis=-1) - many), 0, many) / many
    share = np.zeros_like(rows)
    np.put_along_axis(share, order, kept, axis=-1)
    return normalised(rows * share, rows)
