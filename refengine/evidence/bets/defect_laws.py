"""The law of the next token under each known defect, at every site.

A *site* is (lane, position, context): one conditional of the null hypothesis. `alternatives(p, q)` takes the rows of
every site and gives for every defect the row that it would emit there instead of p, in closed form; tests enumerate the
catalogue's edits of the rule and compare. Given that all drafts before position i were kept, a rule with its own coin
at each position does not remember them, so the law at i needs the rows alone. Where a defect makes no difference, or
its law needs more than the rows, the law is p and no bet is placed. Names are "CLASS: what was observed" (naming.py).

Shapes: p [lanes, gamma + 1, contexts, V], q [lanes, gamma, contexts, V], result [lanes, gamma + 1, contexts, V]; sizes
[V], where rows are kept by cells (rows.py).
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.bets.proposer_laws import proposers
from refengine.evidence.rows import (
    Rows,
    bfloat16,
    drafted_correction,
    float16,
    normalised,
    point,
    positive,
    ratio,
    ratio_rule,
    residual,
    tempered,
    top,
)
from refengine.exact.rules.typical import DELTA as TYPICAL_DELTA
from refengine.exact.rules.typical import EPSILON as TYPICAL_EPSILON

Correction: TypeAlias = Rows | Callable[[int], Rows]
EPSILON = 1e-5  # added to a probability that might be zero, or its lower clamp
MAX_TABLED_VOCABULARY = 64  # above it, laws that need a V x V table are left out
ROUNDING = 1e-9  # between a law of cells and the law of their parts, both in float64


def alternatives(p: Rows, q: Rows, sizes: NDArray[np.int64] | None = None) -> dict[str, Rows]:
    """name of the defect -> its law at every site.

    A law of cells counts where it does not depend on the grouping of the ids: it is computed from parts of the cells
    too, and is p wherever the two differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if sizes is None:
            return _laws(p, q, np.ones(p.shape[-1]))
        whole = _laws(p, q, sizes.astype(float))
        parts = np.minimum(sizes, 2 + np.arange(len(sizes)))  # of unequal sizes, so that nothing cancels
        first = np.cumsum(parts) - parts
        split = _laws(*(np.repeat(rows / parts, parts, axis=-1) for rows in (p, q, sizes)))
    for name, law in whole.items():
        apart = np.abs(np.add.reduceat(split[name], first, axis=-1) - law).max(-1, keepdims=True)
        whole[name] = np.where(apart < ROUNDING, law, p)
    return whole


def _laws(p: Rows, q: Rows, sizes: Rows) -> dict[str, Rows]:
    judged, bonus = p[:, :-1], p[:, -1:]
    laws: dict[str, Rows] = {}
    for name, accept in _acceptances(judged, q, p, sizes).items():
        laws[name] = np.concatenate([ratio_rule(q, accept, residual(judged, q)), bonus], axis=1)
    for name, correction in _corrections(judged, q, p, sizes).items():
        laws[name] = np.concatenate([_with(judged, q, correction), bonus], axis=1)
    for name, last in _bonuses(p, q, sizes).items():
        laws[name] = np.concatenate([judged, last], axis=1)
    laws.update(_whole(p, q, sizes))
    return {name: np.where(np.isfinite(law), law, p) for name, law in laws.items()}


def names() -> list[str]:
    """Every defect, in the order of the laws."""
    p = np.full((2, 3, 1, 4), 0.25)
    return list(alternatives(p, p[:, :-1]))


def _with(p: Rows, q: Rows, correction: Correction) -> Rows:
    if callable(correction):
        return p if p.shape[-1] > MAX_TABLED_VOCABULARY else drafted_correction(q, ratio(p, q), correction)
    return ratio_rule(q, ratio(p, q), correction)


def _neighbours(rows: Rows, axis: int, step: int) -> Rows:
    """The rows of the next lane (axis 0, in a ring) or position (axis 1, the last one repeated); unchanged where the
    context of the neighbour is unknown."""
    if rows.shape[2] > 1:
        return rows
    if axis == 0:
        return np.roll(rows, -step, axis=0)
    return rows[:, np.clip(np.arange(rows.shape[1]) + step, 0, rows.shape[1] - 1)]


def _acceptances(p: Rows, q: Rows, every_p: Rows, sizes: Rows) -> dict[str, Rows]:
    """accept(x) of rules that correct from the right residual."""
    each = p / sizes
    entropy = -(p * np.log(np.where(each > 0, each, 1.0))).sum(-1, keepdims=True)
    least = np.minimum(TYPICAL_EPSILON, TYPICAL_DELTA * np.exp(-entropy))
    overlap = np.minimum(p, q).sum(-1, keepdims=True)
    next_p = _neighbours(every_p, 1, 1)[:, :-1] if p.shape[2] == 1 else p
    previous_p = _neighbours(every_p, 1, -1)[:, :-1] if p.shape[2] == 1 else p
    variants = {
        "accepts always: every draft is accepted": np.ones_like(p),
        "accepts never: no draft is accepted": np.zeros_like(p),
        "another acceptance: accepted with p instead of p/q": each,
        "no coin: accepted where p >= q, without a coin": (p >= q).astype(float),
        "no coin: the coin is fixed at one half": (ratio(p, q) > 0.5).astype(float),
        "another acceptance: the ratio is squared": ratio(p, q) ** 2,
        "another acceptance: the ratio has exponent 1.1": ratio(p, q) ** 1.1,
        "another acceptance: the ratio has exponent 0.9": ratio(p, q) ** 0.9,
        "another acceptance: the ratio is under a square root": ratio(p, q) ** 0.5,
        "ratio upside down: the ratio is upside down": ratio(q, p),
        "another acceptance: accepted with p/(p+q)": np.where(p > 0, p / np.where(p + q > 0, p + q, 1.0), 0.0),
        "another acceptance: accepted with 1 - TV whatever the draft": np.broadcast_to(overlap, p.shape),
        "lossy by design: typical-by-default: accepted by a threshold (typical acceptance)": (each > least).astype(
            float
        ),
        "another acceptance: the ratio is 2 % too generous": np.minimum(1.0, 1.02 * ratio(p, q)),
        "another acceptance: the ratio is 2 % too strict": 0.98 * ratio(p, q),
        "row slip: the ratio takes p of the next position": ratio(next_p, q),
        "row slip: the ratio takes p of the position before": ratio(previous_p, q),
        "row slip of q: the ratio takes q of the next position": ratio(p, _neighbours(q, 1, 1)),
        "row slip of q: the ratio takes q of the position before": ratio(p, _neighbours(q, 1, -1)),
        "rows of another lane: the ratio takes p of another lane": ratio(_neighbours(p, 0, 1), q),
        "rows of another lane: the ratio takes q of another lane": ratio(p, _neighbours(q, 0, 1)),
        "temperature dropped: the ratio takes p at temperature 2": ratio(tempered(p, 2.0, sizes), q),
        "temperature dropped: the ratio takes p at temperature 1/2": ratio(tempered(p, 0.5, sizes), q),
        "epsilon: the ratio's q is at least 1e-5": ratio(p, np.maximum(q, EPSILON * sizes)),
        "epsilon: the ratio's p is at least 1e-5": ratio(np.maximum(p, EPSILON * sizes), q),
        "half precision: the ratio takes bfloat16 rows": ratio(bfloat16(p / sizes), bfloat16(q / sizes)),
        "coarse coin: the coin has about 8 bits": _below(ratio(p, q), 8),
        "coarse coin: the coin has about 11 bits": _below(ratio(p, q), 11),
    }
    for name, where in (("first", 0), ("last", -1)):
        accept = ratio(p, q)
        accept[:, where] = 1.0
        variants[f"{name} draft unverified: the {name} draft is not verified"] = accept
    return variants


def _below(accept: Rows, bits: int) -> Rows:
    """The chance that a coin k / 2^bits is below it, k even on 0 .. 2^bits - 1: as in bfloat16 (8) and float16 (11)."""
    return np.asarray(np.ceil(2**bits * accept) / 2**bits)


def _corrections(p: Rows, q: Rows, every_p: Rows, sizes: Rows) -> dict[str, Correction]:
    """The row that a correction is drawn from after a refusal, the acceptance being right."""
    r = residual(p, q)
    ids = np.arange(p.shape[-1])
    next_p = _neighbours(every_p, 1, 1)[:, :-1] if p.shape[2] == 1 else p

    def shifted(step: int) -> Rows:
        return np.roll(r, step, axis=-1)

    return {
        "resample from target: corrected from p instead of the residual": p,
        "another correction: corrected from q": q,
        "another correction: corrected from |p - q|": normalised(np.abs(p - q), p),
        "one-hot residual: corrected from p minus the draft token (one-hot residual)": lambda x: normalised(
            p * (ids != x), p
        ),
        "another correction: corrected uniformly": _even(p, sizes),
        "another correction: corrected uniformly on the support of p": normalised((p > 0) * sizes, p),
        "greedy at temperature: corrected by the argmax of the residual": point(r, sizes),
        "greedy at temperature: corrected by the argmax of p": point(p, sizes),
        "another correction: corrected from the softmax of the residual": normalised(
            np.exp(positive(p - q) / sizes) * sizes, p
        ),
        "another correction: corrected from the softmax of p - q": normalised(np.exp((p - q) / sizes) * sizes, p),
        "another correction: corrected from the residual squared": normalised(r**2 / sizes, p),
        "row slip: corrected from the residual of the next p": residual(next_p, q),
        "row slip of q: corrected from the residual with the next q": residual(p, _neighbours(q, 1, 1)),
        "row slip of q: corrected from the residual with the q before": residual(p, _neighbours(q, 1, -1)),
        "rows of another lane: corrected from the residual of another lane": _neighbours(r, 0, 1),
        "ids off by one: corrected one id too high": shifted(1),
        "ids off by one: corrected one id too low": shifted(-1),
        "ids off by one: corrected one id too high, the last one kept": _high(r),
        "an end of the vocabulary is lost: the last id is never a correction": normalised(
            r * (ids < p.shape[-1] - 1), p
        ),
        "an end of the vocabulary is lost: the first id is never a correction": normalised(r * (ids > 0), p),
        "half precision: the residual is taken of bfloat16 rows": _low_residual(p, q, sizes, bfloat16),
        "half precision: the residual is taken of float16 rows": _low_residual(p, q, sizes, float16),
        "half precision: the residual is rounded to bfloat16": normalised(bfloat16(positive(p - q) / sizes) * sizes, p),
        "half precision: the residual is rounded to float16": normalised(float16(positive(p - q) / sizes) * sizes, p),
        "half precision: the normalised residual is rounded to bfloat16": normalised(bfloat16(r / sizes) * sizes, p),
        "epsilon: the residual has 1e-5 added": normalised(positive(p - q) + EPSILON * sizes, p),
        "one coin for two uses: the accepting coin picks the correction": _same_coin(p, q),
    }


def _high(rows: Rows) -> Rows:
    """Every id one higher, the last one kept in place."""
    row = np.roll(rows, 1, axis=-1)
    row[..., -1] += row[..., 0]
    row[..., 0] = 0.0
    return row


def _low(rows: Rows) -> Rows:
    """Every id one lower, the first one kept in place."""
    return _high(rows[..., ::-1])[..., ::-1]


def _even(rows: Rows, sizes: Rows) -> Rows:
    """Every id alike."""
    return np.broadcast_to(sizes / sizes.sum(), rows.shape)


def _low_residual(p: Rows, q: Rows, sizes: Rows, rounded: Callable[[Rows], Rows]) -> Rows:
    return normalised(positive(rounded(rounded(p / sizes) - rounded(q / sizes))) * sizes, p)


def _same_coin(p: Rows, q: Rows) -> Callable[[int], Rows]:
    """Refusing x leaves u uniform on (p/q (x), 1); the inverse CDF of the residual at that u."""
    cdf = np.cumsum(residual(p, q), axis=-1)
    lower = np.concatenate([np.zeros_like(cdf[..., :1]), cdf[..., :-1]], axis=-1)
    accept = ratio(p, q)

    def correction(x: int) -> Rows:
        least = accept[..., x : x + 1]
        return normalised(positive(cdf - np.maximum(lower, least)), p)

    return correction


def _bonuses(p: Rows, q: Rows, sizes: Rows) -> dict[str, Rows]:
    """The row of the token after a block that was kept whole, everything before it being right."""
    bonus = p[:, -1:]
    last_q = q[:, -1:] if p.shape[2] == 1 else bonus
    return {
        "another bonus: the bonus comes from q": last_q,
        "bonus from the row before: the bonus comes from the row before": p[:, -2:-1] if p.shape[2] == 1 else bonus,
        "bonus from the row before: the bonus comes from the first row": p[:, :1] if p.shape[2] == 1 else bonus,
        "another bonus: the bonus comes from a residual": residual(bonus, last_q) if p.shape[2] == 1 else bonus,
        "rows of another lane: the bonus comes from another lane": _neighbours(bonus, 0, 1),
        "greedy at temperature: the bonus is the argmax": point(bonus, sizes),
        "another bonus: the bonus is uniform": _even(bonus, sizes),
        "ids off by one: the bonus is one id too high": np.roll(bonus, 1, axis=-1),
        "ids off by one: the bonus is one id too low": np.roll(bonus, -1, axis=-1),
        "temperature dropped: the bonus has temperature 2": tempered(bonus, 2.0, sizes),
        "temperature dropped: the bonus has temperature 1/2": tempered(bonus, 0.5, sizes),
    }


def _whole(p: Rows, q: Rows, sizes: Rows) -> dict[str, Rows]:
    """Defects of every emitted token alike, and of the proposer."""
    judged, bonus = p[:, :-1], p[:, -1:]
    laws = {
        f"temperature dropped: the target has temperature {t:g}": tempered(p, t, sizes)
        for t in (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)
    }
    for name, rounded in (("bfloat16", bfloat16), ("float16", float16)):
        accept = rounded(ratio(rounded(judged / sizes), rounded(q / sizes)))
        judged_law = ratio_rule(q, accept, _low_residual(judged, q, sizes, rounded))
        low_bonus = normalised(rounded(bonus / sizes) * sizes, bonus)
        laws[f"half precision: everything is in {name}"] = np.concatenate([judged_law, low_bonus], axis=1)
    laws |= {f"another filter: the target is cut to its top {k}": top(p, k, sizes) for k in (1, 2, 50)}
    accept, r = ratio(judged, q), residual(judged, q)
    ids = np.arange(p.shape[-1])
    lost = "an end of the vocabulary is lost"
    for name, wrong in (
        ("ids off by one: every pick is one id too high", _high),
        ("ids off by one: every pick is one id too low", _low),
        (f"{lost}: every pick is never the last id", lambda x: normalised(x * (ids < ids[-1]), point(x, sizes))),
        (f"{lost}: every pick is never the first id", lambda x: normalised(x * (ids > 0), point(x, sizes))),
        ("greedy at temperature: every pick is the argmax", lambda x: point(x, sizes)),
        ("temperature dropped: every pick is at temperature 1/2", lambda x: tempered(x, 0.5, sizes)),
    ):
        laws[name] = np.concatenate([ratio_rule(q, accept, wrong(r)), wrong(bonus)], axis=1)
    lanes = np.arange(len(p))
    pairs = np.where(lanes ^ 1 < len(p), lanes ^ 1, lanes)
    laws["rows of another lane: rows of another lane (the next)"] = _neighbours(p, 0, 1)
    laws["rows of another lane: rows of another lane (pairs swapped)"] = p[pairs] if p.shape[2] == 1 else p
    laws["rows of another lane: rows of another lane (late pairs swapped)"] = (
        p[np.where(lanes > 1, pairs, lanes)] if p.shape[2] == 1 else p
    )
    laws["rows of another lane: rows of another lane (in reverse)"] = p[::-1] if p.shape[2] == 1 else p
    laws["row slip: rows of the next position"] = _neighbours(p, 1, 1)
    laws["row slip: rows of the position before"] = _neighbours(p, 1, -1)
    for name, judged_law in proposers(judged, q, sizes):
        laws[name] = np.concatenate([judged_law, bonus], axis=1)
    return laws
