"""The laws of a block in which one coin is used for several decisions, from the rows and the emitted prefix.

That what comes next depends on the tokens before is no sign of it: a correction that is wrong behind one token does so
too. So every way of sharing has a law of its own, and is named only where that law fits. Behind a prefix each coin lies
in an interval, and a pick by inverse CDF with such a coin is the row cut to the interval.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from refengine.audit.inputs.case import Case
from refengine.audit.kernel.exact_law import context_after
from refengine.evidence.naming import AGREEING_COIN, COIN_BEFORE, COIN_FOR_ALL, FIRST_COIN, LAST_COIN, ONE_COIN
from refengine.evidence.rows import Rows, drafted_correction, normalised, positive, ratio, ratio_rule, residual

Along = Sequence[Rows]  # the row of every position along a prefix; of q none behind a whole block
Law = Callable[[Along, Along, Sequence[int]], Rows]


def next_row(way: str, case: Case, lane: int, emitted: Sequence[int]) -> Rows:
    """The law of the next token behind what a lane has emitted."""
    sites = [(lane, i, context_after(case, emitted[:i])) for i in range(len(emitted) + 1)]
    return WAYS[way]([case.p[site] for site in sites], [case.q[site] for site in sites[: case.gamma]], emitted)


def _ratio_rule(
    p: Along, q: Along, kept: Sequence[int], judge: Callable[[int], int], pick: Callable[[int, bool], int | None]
) -> Rows:
    """Draft i is judged by coin judge(i), and what stands behind n kept drafts is drawn with coin pick(n, whether that
    is the whole block); None is a coin of its own."""
    n, whole = len(kept), len(q) == len(kept)
    high: dict[int | None, float] = {}
    for i, token in enumerate(kept):
        high[judge(i)] = min(high.get(judge(i), 1.0), float(ratio(p[i], q[i])[token]))
    picked, most = pick(n, whole), high.get(pick(n, whole), 1.0)
    if not all(high.values()):
        return p[n]  # a prefix that never comes
    if whole:
        return _between(p[n], 0.0, most)
    left, accept = residual(p[n], q[n]), ratio(p[n], q[n])
    accept = np.minimum(1.0, accept / high.get(judge(n), 1.0))
    if picked != judge(n):
        return ratio_rule(q[n], accept, _between(left, 0.0, most))
    return drafted_correction(q[n], accept, lambda x: _between(left, float(ratio(p[n], q[n])[x]), most))


def _agreement(p: Along, q: Along, tokens: Sequence[int]) -> Rows:
    """Every token is the target's own, picked by one coin."""
    ends = [np.cumsum(row) for row in p]
    low = max((float(end[token] - row[token]) for end, row, token in zip(ends, p, tokens, strict=False)), default=0.0)
    high = min((float(end[token]) for end, token in zip(ends, tokens, strict=False)), default=1.0)
    return _between(p[len(tokens)], low, high)


def _between(row: Rows, low: float, high: float) -> Rows:
    """A row where the coin of its inverse CDF lies between; itself where that never happens."""
    end = np.cumsum(row)
    return normalised(positive(np.minimum(end, high) - np.maximum(end - row, low)), row)


def _own(i: int) -> int:
    return i


def _first(i: int) -> int:
    return 0


WAYS: dict[str, Law] = {
    ONE_COIN: partial(_ratio_rule, judge=_first, pick=lambda n, whole: None),
    COIN_FOR_ALL: partial(_ratio_rule, judge=_first, pick=lambda n, whole: 0),
    LAST_COIN: partial(_ratio_rule, judge=_own, pick=lambda n, whole: n - whole),
    COIN_BEFORE: partial(_ratio_rule, judge=_own, pick=lambda n, whole: n - 1 if n else None),
    FIRST_COIN: partial(_ratio_rule, judge=_own, pick=lambda n, whole: 0),
    AGREEING_COIN: _agreement,
}
