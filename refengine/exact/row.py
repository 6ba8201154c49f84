"""A row: one distribution over the vocabulary, as a tuple of exact rationals. What the rules do to rows."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

Row: TypeAlias = tuple[Fraction, ...]


def row(weights: Sequence[int | Fraction | str]) -> Row:
    """The row proportional to `weights` (ints, Fractions or strings such as "0.7"); raises on negative or zero mass."""
    exact = [Fraction(w) for w in weights]
    for token, weight in enumerate(exact):
        if weight < 0:
            raise ValueError(f"weight of token {token} is negative: {weight}")
    return normalised(exact)


def normalised(weights: Sequence[Fraction]) -> Row:
    """Divide by the sum; raises ValueError where nothing has mass."""
    total = sum(weights, Fraction(0))  # a Fraction, so that ints stay exact
    if total == 0:
        raise ValueError("no token has mass, so the row cannot be normalised")
    return tuple(w / total for w in weights)


def point(token: int, vocabulary: int) -> Row:
    """All mass on one token."""
    return tuple(Fraction(int(x == token)) for x in range(vocabulary))


def argmax(weights: Sequence[Fraction]) -> int:
    """The heaviest token, ties to the lowest id."""
    return max(range(len(weights)), key=lambda x: (weights[x], -x))


def residual(p: Sequence[Fraction], q: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """(p - q)+, not normalised: what the target wanted beyond what the draft supplied."""
    return tuple(max(px - qx, Fraction(0)) for px, qx in zip(p, q, strict=True))


def without(weights: Sequence[Fraction], token: int) -> tuple[Fraction, ...]:
    """The same weights with one token taken out, not normalised."""
    return tuple(Fraction(0) if x == token else w for x, w in enumerate(weights))


def overlap(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """sum of min(p, q) = 1 - TV(p, q)."""
    return sum((min(px, qx) for px, qx in zip(p, q, strict=True)), Fraction(0))
