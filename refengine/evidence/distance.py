"""Bounds on the chance of a hit, and lower bounds on a total variation from sets of tokens that were fixed before."""

import numpy as np
from scipy.special import betaincinv


def share_at_least(hits: int, n: int, confidence: float) -> float:
    """A lower bound on the chance of a hit, of which there were so many in n draws (Clopper and Pearson, 1934)."""
    return float(betaincinv(hits, n - hits + 1, 1 - confidence)) if hits else 0.0


def share_at_most(hits: int, n: int, confidence: float) -> float:
    """An upper bound, by the same."""
    return float(betaincinv(hits + 1, n - hits, confidence)) if hits < n else 1.0


def tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on TV from one set of tokens that was fixed before these n draws: P(set) - p(set) <= TV.

    hits  draws that fell into the set; mass  p(set)
    """
    if n == 0:
        return 0.0
    return max(0.0, share_at_least(hits, n, confidence) - mass)


def mean_tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on the mean TV over the sites and histories of n draws, each with a set of tokens of its own that
    was fixed before. mass: the mean null mass of the sets.

    hits - n mass, less the deviations of the laws, is a martingale with steps of range 1 (Azuma, Hoeffding).
    """
    return max(0.0, hits / n - mass - float(np.sqrt(-np.log(1.0 - confidence) / (2.0 * n))))
