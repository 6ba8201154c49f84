"""How far a law goes beyond another one, where part of it may be missing."""

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

from refengine.exact.chance import Weight

T = TypeVar("T", bound=Hashable)


def excess(observed: Mapping[T, Weight], expected: Mapping[T, Weight]) -> Weight:
    """Sum of (observed - expected)+: the total variation of two laws.

    Where runs that raise are missing from `observed` it is a lower bound of it, and what raises cannot add to it: a
    crash never makes a wrong law.
    """
    return sum((max(mass - expected.get(x, 0), 0) for x, mass in observed.items()), Fraction(0))
