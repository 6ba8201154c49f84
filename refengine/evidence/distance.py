"""Lower bounds on a total variation, from sets of tokens that were fixed before the draws."""

import numpy as np
from scipy.stats import binomtest


def tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on TV from one set of tokens that was fixed before these n draws: P(set) - p(set) <= TV.

    hits  draws that fell into the set; mass  p(set); the bound on P(set) is that of Clopper and Pearson
    """
    if n == 0:
        return 0.0
    interval = binomtest(hits, n, alternative="greater").proportion_ci(confidence, method="exact")
    return max(0.0, float(interval.low) - mass)


def mean_tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on the mean TV over the sites and histories of n draws, each with a set of tokens of its own that
    was fixed before. mass: the mean null mass of the sets.

    hits - n mass, less the deviations of the laws, is a martingale with steps of range 1 (Azuma, Hoeffding).
    """
    return max(0.0, hits / n - mass - float(np.sqrt(-np.log(1.0 - confidence) / (2.0 * n))))
