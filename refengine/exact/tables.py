"""Hostile tables: small context-dependent pairs (target, draft) on which wrong rules show.

Every row is a deterministic function of (family, seed, prefix), with integer weights of at most 9, so that laws stay
small fractions and two machines see the same tables. Rows differ by position and by context: a rule that reads the
row of another position is wrong on them.
"""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from refengine.exact.row import Row, normalised, point

Prefix: TypeAlias = tuple[int, ...]
Table: TypeAlias = Callable[[Prefix], Row]

FAMILIES = ("generic", "zeros", "equal", "disjoint", "reversed", "one-hot target", "one-hot draft", "rare")


def tables(family: str, vocabulary: int, seed: int) -> tuple[Table, Table]:
    """The (target, draft) of a family; raises ValueError on an unknown family."""
    if family not in FAMILIES:
        raise ValueError(f"unknown family {family!r}: one of {', '.join(FAMILIES)}")
    rows: dict[Prefix, tuple[Row, Row]] = {}

    def pair(prefix: Prefix) -> tuple[Row, Row]:
        if prefix not in rows:
            rows[prefix] = _pair(family, vocabulary, random.Random(f"{family}/{vocabulary}/{seed}/{prefix}"))
        return rows[prefix]

    return (lambda prefix: pair(prefix)[0]), (lambda prefix: pair(prefix)[1])


def _pair(family: str, vocabulary: int, rng: random.Random) -> tuple[Row, Row]:
    p, q = _row(vocabulary, rng), _row(vocabulary, rng)
    if family == "zeros":
        return _with_zero(p, rng), _with_zero(q, rng)
    if family == "equal":
        return p, p
    if family == "disjoint":
        cut = rng.randrange(1, vocabulary)
        return normalised((*p[:cut], *([Fraction(0)] * (vocabulary - cut)))), normalised(
            (*([Fraction(0)] * cut), *q[cut:])
        )
    if family == "reversed":
        return p, p[::-1]
    if family == "one-hot target":
        return point(rng.randrange(vocabulary), vocabulary), q
    if family == "one-hot draft":
        return p, point(rng.randrange(vocabulary), vocabulary)
    if family == "rare":
        return _with_rare(p, rng), _with_rare(q, rng)
    return p, q


def _row(vocabulary: int, rng: random.Random) -> Row:
    return normalised([Fraction(rng.randint(1, 9)) for _ in range(vocabulary)])


def _with_zero(row: Row, rng: random.Random) -> Row:
    banned = rng.sample(range(len(row)), rng.randrange(len(row)))
    return normalised([Fraction(0) if x in banned else px for x, px in enumerate(row)])


def _with_rare(row: Row, rng: random.Random) -> Row:
    x = rng.randrange(len(row))
    return normalised([px / 1000 if y == x else px for y, px in enumerate(row)])
