"""Lower bounds on total variation that hold with a stated confidence."""

import numpy as np
from scipy.stats import beta


def tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on TV from one set of tokens that was fixed before these n draws: P(set) - p(set) <= TV."""
    low = float(beta.ppf(1.0 - confidence, hits, n - hits + 1)) if hits else 0.0
    return max(0.0, low - mass)


def mean_tv_at_least(hits: int, n: int, mass: float, confidence: float) -> float:
    """A lower bound on the mean TV over the places and pasts of n draws, each asked about a set of its own that was
    fixed before: hits - due is a martingale but for what the laws are off by, with steps of range 1 (Azuma, Hoeffding).
    """
    return max(0.0, hits / n - mass - float(np.sqrt(-np.log(1.0 - confidence) / (2.0 * n))))
