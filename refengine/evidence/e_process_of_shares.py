"""Sequential evidence that a share is not the one that is due, and the interval that holds at every look.

The null: each trial is worth between 0 and 1, and its mean, whatever came before, is the share that is due. A trial of
0 or 1 that is won with another share v multiplies the wealth by the ratio of their chances; that ratio is convex in
what the trial is worth, so its mean is at most 1 for any trial with the mean of the null. The bets on all v are mixed
by Beta(1/2, 1/2), which gives a closed form: evidence depends on the sums alone and may be looked at as often as one
likes (Robbins 1970, "Statistical methods related to the law of the iterated logarithm"; Howard et al. 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from refengine.evidence.rows import log_sum

EDGE = 1e-9  # of a share, where its logarithm is taken
TILTS = np.array([-2.0, -0.7, -0.2, -0.05, 0.05, 0.2, 0.7, 2.0])  # of log odds
BALL = 1e-3  # of a chance: float32 against double precision moves it by less than 1e-5
POWER_DEVIATIONS = 2.33  # of the normal law: what is not reached once in a hundred times


@dataclass(frozen=True)
class Share:
    """kept of judged trials; each is worth between 0 and 1, so neither need be whole."""

    kept: float
    judged: float

    @property
    def rate(self) -> float:
        return self.kept / self.judged if self.judged else 0.0

    def thinned(self, alike: float) -> "Share":
        """As many trials as are worth this many that are alike in groups (the design effect; Rao and Scott 1981)."""
        return Share(self.kept / alike, self.judged / alike)


def log_evidence(share: Share, low: float, high: float) -> float:
    """Against every null in [low, high]: the least of them, that of the share nearest to what was seen."""
    due = min(max(share.rate, low, EDGE), high, 1 - EDGE)
    missed = share.judged - share.kept
    mixed = betaln(share.kept + 0.5, missed + 0.5) - betaln(0.5, 0.5)
    return float(mixed - xlogy(share.kept, due) - xlogy(missed, 1 - due))


def interval(share: Share, alpha: float) -> tuple[float, float]:
    """The shares that the evidence does not reject: all intervals of a growing sum hold at once with 1 - alpha."""
    bar = log(1 / alpha)

    def edge(end: float) -> float:
        if share.judged == 0 or log_evidence(share, end, end) <= bar:
            return end
        inside = min(max(share.rate, EDGE), 1 - EDGE)
        return float(brentq(lambda v: log_evidence(share, v, v) - bar, *sorted((end, inside))))

    return edge(EDGE), edge(1 - EDGE)


def log_evidence_of_chances(won: Sequence[bool], chances: Sequence[float]) -> float:
    """Against trials that each have a chance of their own, to within BALL: bets on odds that are exp(t) as high."""
    y, p = np.array(won, dtype=float), np.array(chances, dtype=float)
    likeliest = np.where(TILTS[:, None] > 0, np.minimum(1.0, p + BALL), np.maximum(0.0, p - BALL))
    wealth = (TILTS[:, None] * y - np.log1p(likeliest * np.expm1(TILTS)[:, None])).sum(-1)
    return float(log_sum(wealth, 0) - log(len(TILTS)))


def detectable(judged: float, low: float, high: float, bar: float) -> float:
    """By how much a share must lie outside of [low, high] for evidence to reach the bar with probability 0.99; 1 where
    none would."""

    def shows(way: int, edge: float) -> float:
        room = 1 - edge if way > 0 else edge

        def over(by: float) -> float:
            v = edge + way * by
            rate = v - way * POWER_DEVIATIONS * sqrt(v * (1 - v) / judged)
            inside = (rate - edge) * way <= 0
            return -bar if inside else log_evidence(Share(rate * judged, judged), low, high) - bar

        end = room - EDGE
        return float(brentq(over, 0.0, end)) if judged > 0 and end > 0 and over(end) > 0 else 1.0

    return max(shows(-1, low), shows(1, high))
