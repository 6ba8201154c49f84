"""How far a mean of n independent draws may be from its expectation before the formula is called wrong."""

import math

ALPHA = 1e-9  # probability, over seeds, that a true formula fails; the seeds are fixed


def hoeffding(n: int, spread: float, alpha: float = ALPHA) -> float:
    """P(|mean - expectation| >= t) <= alpha for n independent draws in an interval of length `spread` (Hoeffding)."""
    return spread * math.sqrt(math.log(2 / alpha) / (2 * n))


def chebyshev(n: int, variance: float, alpha: float = 1e-4) -> float:
    """The same for draws that are not bounded, from their variance; cruder, hence the larger alpha."""
    return math.sqrt(variance / (n * alpha))
