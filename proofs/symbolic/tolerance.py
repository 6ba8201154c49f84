"""How far a mean of n independent draws may be from its expectation before the formula is called wrong."""

import math
from typing import Any

import numpy as np
from scipy import stats

ALPHA = 1e-9  # probability, over seeds, that a true formula fails; the seeds are fixed


def hoeffding(n: int, spread: float, alpha: float = ALPHA) -> float:
    """P(|mean - expectation| >= t) <= alpha for n independent draws in an interval of length `spread` (Hoeffding)."""
    return spread * math.sqrt(math.log(2 / alpha) / (2 * n))


def of_batches(draws: np.ndarray[Any, Any], batches: int = 40, alpha: float = ALPHA) -> float:
    """The same for draws without a bound: Student's t on the means of `batches` equal batches, each near normal."""
    means = draws.reshape(batches, -1).mean(axis=1)
    return float(stats.t.ppf(1 - alpha / 2, batches - 1) * means.std(ddof=1) / math.sqrt(batches))
