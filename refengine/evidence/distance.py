"""Total variation with a confidence interval that holds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def binomial(hits: int, n: int, confidence: float) -> Interval:
    """Clopper-Pearson: covers the probability with at least this confidence at any n."""
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.isf(tail, hits + 1, n - hits)) if hits < n else 1.0
    return Interval(low, high)


def tv_interval(counts: ArrayLike, p: ArrayLike, confidence: float = 0.99) -> Interval:
    """Covers TV(law, p) with at least this confidence; counts [V] are draws from the law.

    By Weissman et al. 2003 the empirical law is within e in L1 of the law except with probability
    (2^V - 2) exp(-n e^2 / 2), so its TV to p is within e / 2 of the truth. It holds at every n and V, and is wide where
    V is large.
    """
    counts, p = np.asarray(counts, dtype=float), np.asarray(p, dtype=float)
    n, cells = counts.sum(), len(counts)
    if n == 0:
        return Interval(0.0, 1.0)
    log_sets = cells * np.log(2.0) + np.log1p(-(2.0 ** (1 - cells))) if cells > 1 else 0.0
    e = np.sqrt(2.0 * (log_sets - np.log(1.0 - confidence)) / n)
    seen = float(np.abs(counts / n - p).sum() / 2.0)
    return Interval(max(0.0, seen - e / 2.0), min(1.0, seen + e / 2.0))


def tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on TV from one set of tokens that was fixed before these n draws: P(set) - p(set) <= TV."""
    low = float(beta.ppf(1.0 - confidence, hits, n - hits + 1)) if hits else 0.0
    return max(0.0, low - mass)


def mean_tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on the mean TV over the sites and pasts of n draws, each asked about a set of its own that was
    fixed before: hits - due is a martingale but for what the laws are off by, with steps of range 1 (Azuma, Hoeffding).
    """
    return max(0.0, hits / n - mass - float(np.sqrt(-np.log(1.0 - confidence) / (2.0 * n))))
