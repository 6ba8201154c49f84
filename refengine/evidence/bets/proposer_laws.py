"""Defects of the proposer: the rule is right, and the draft was not drawn from the q that it is weighed against.

Shapes: p, q and the laws [lanes, gamma, contexts, V]; sizes [V] as in defect_laws.py.
"""

from collections.abc import Iterator

import numpy as np

from refengine.evidence.rows import Rows, normalised, point, positive, ratio, ratio_rule, residual, tempered, top


def proposers(p: Rows, q: Rows, sizes: Rows) -> Iterator[tuple[str, Rows]]:
    """name -> the law of the next token, at sites where there is a draft."""
    accept, r = ratio(p, q), residual(p, q)
    yield "greedy proposal, soft q: drafted by argmax, weighed against q", ratio_rule(point(q, sizes), accept, r)
    for t in (0.5, 2.0):
        yield (
            f"raw row as q: drafted at temperature {t:g}, weighed against q",
            ratio_rule(tempered(q, t, sizes), accept, r),
        )
    yield "raw row as q: drafted from top 2, weighed against q", ratio_rule(top(q, 2, sizes), accept, r)
    for least in (0.1, 0.3):
        kept = q / sizes >= least
        refused = (q * kept * (1.0 - accept)).sum(-1, keepdims=True)
        dropped = (q * ~kept).sum(-1, keepdims=True)
        yield (
            f"value-dependent truncation: drafts with q < {least:g} are dropped",
            q * accept * kept + refused * r + dropped * p,
        )
    yield "draft and verifier share coins: one noise drafts and corrects", _shared_race(p, q)
    yield "equal candidates merged: a candidate that repeats a refused one is skipped", _repeats_skipped(p, q, sizes)


def _repeats_skipped(p: Rows, q: Rows, sizes: Rows) -> Rows:
    """Two candidates from q by recursive rejection. Where the second is the first again it is skipped, with its update
    of the residual: since a refused draft has no residual left, a refusal is skipped, and r = (p - q)+ stands where
    (r - q)+ is due."""
    repeated = (q / sizes * positive(q - p)).sum(-1, keepdims=True)
    r = residual(p, q)
    return np.asarray(p + repeated * (r - residual(r, q)))


def _shared_race(p: Rows, q: Rows) -> Rows:
    """Draft argmin E/q, correction argmin E/(p - q)+ over the same exponentials E.

    A refused draft has q > p and takes no part in the correction. That it won at time t, with density e^-t, says of
    every other i that E_i > q_i t: it enters the second race at t c_i, c_i = q_i / r_i, and runs there afresh. With
    the runners in the order of c, and R, Q the sums of r and q over the first k, integrating over both times gives
    P(y) = r_y sum_(k >= rank of y) [1 / (1 + R c_k - Q) - 1 / (1 + R c_(k+1) - Q)] / R.
    """
    r = positive(p - q)
    c = np.where(r > 0, q / np.where(r > 0, r, 1.0), np.inf)
    order = np.argsort(c, axis=-1, kind="stable")
    entry = np.take_along_axis(c, order, axis=-1)
    following = np.concatenate([entry[..., 1:], np.full_like(entry[..., :1], np.inf)], axis=-1)
    rates = np.cumsum(np.take_along_axis(r, order, axis=-1), axis=-1)
    drafted = np.cumsum(np.take_along_axis(np.where(r > 0, q, 0.0), order, axis=-1), axis=-1)
    with np.errstate(all="ignore"):
        gaps = [1.0 / (1.0 + rates * time - drafted) for time in (entry, following)]
        wins = np.where(rates > 0, (gaps[0] - gaps[1]) / rates, 0.0)
    from_rank = np.cumsum(wins[..., ::-1], axis=-1)[..., ::-1]
    correction = np.zeros_like(r)
    np.put_along_axis(correction, order, from_rank, axis=-1)
    return ratio_rule(q, ratio(p, q), normalised(correction * r, p))
