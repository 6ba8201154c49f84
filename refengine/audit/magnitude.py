"""The size of a violation: the total variation of two laws, a lower bound of it, and small masses as numbers."""

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

from refengine.exact.chance import Weight
from refengine.report.finding import Magnitude, Quantity

T = TypeVar("T", bound=Hashable)


def excess(observed: Mapping[T, Weight], expected: Mapping[T, Weight]) -> Weight:
    """Sum of (observed - expected)+: the total variation of two laws.

    Where runs that raise are missing from `observed`, the sum is a lower bound of the total variation, and a run that
    raises cannot add to it: a crash never makes a wrong law.
    """
    return sum((max(mass - expected.get(x, 0), 0) for x, mass in observed.items()), Fraction(0))


def small_mass(value: float) -> Quantity:
    """A mass that may be as small as one coin in 2^24, with a tolerance in proportion to it.

    The mass is a product of float32 probabilities and coins, each off by some 2^-24 of itself where kernels differ:
    2^-20 of the nearest power of two leaves room for sixteen. The power of two is the same on every machine.
    """
    return Quantity(value=value, tolerance=2.0 ** (round(math.log2(value)) - 20) if value > 0 else 0.0)


def at_least(tv: float, tolerance: float = 0.0, breaks_mask: bool = False) -> Magnitude | None:
    """A total variation bounded from below by a sample. None where the bound is zero and no mask breaks."""
    if tv <= 0.0 and not breaks_mask:
        return None
    return Magnitude(tv=Quantity(value=tv, tolerance=tolerance), exact=False, breaks_mask=breaks_mask)
