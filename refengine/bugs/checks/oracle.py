"""What the answers should be, computed without the code under test: plain recursions over dicts of Fractions.

The checks run with a defect somewhere in the package, so nothing here may import the package.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

Row: TypeAlias = Sequence[Fraction]
Rows: TypeAlias = Callable[[tuple[int, ...]], Row]
Law: TypeAlias = Mapping[Any, Fraction]

ONE, ZERO = Fraction(1), Fraction(0)


def ancestral(rows: Rows, prefix: tuple[int, ...], length: int) -> dict[tuple[int, ...], Fraction]:
    """The joint law of `length` tokens drawn one after the other."""
    if length == 0:
        return {(): ONE}
    return {
        (x, *rest): px * mass
        for x, px in enumerate(rows(prefix))
        if px
        for rest, mass in ancestral(rows, (*prefix, x), length - 1).items()
    }


def topped_up(emitted: Law, rows: Rows, prefix: tuple[int, ...], length: int) -> dict[tuple[int, ...], Fraction]:
    """Outputs cut to `length`, shorter ones completed with draws from `rows`."""
    out: dict[tuple[int, ...], Fraction] = {}
    for tokens, mass in emitted.items():
        for tail, share in ancestral(rows, prefix + tokens[:length], max(0, length - len(tokens))).items():
            whole = (*tokens[:length], *tail)
            out[whole] = out.get(whole, ZERO) + mass * share
    return out


def distance(a: Law, b: Law) -> Fraction:
    """Total variation, as the mass by which a exceeds b (both have mass one: checked)."""
    if sum(a.values()) != 1 or sum(b.values()) != 1:
        return ONE
    return sum((mass - min(mass, b.get(x, ZERO)) for x, mass in a.items()), ZERO)


def heaviest(row: Row) -> int:
    """The argmax, ties to the lowest id."""
    best = 0
    for x in range(1, len(row)):
        if row[x] > row[best]:
            best = x
    return best


def one_hot(row: Row) -> tuple[Fraction, ...]:
    return tuple(ONE if x == heaviest(row) else ZERO for x in range(len(row)))


# --- expected numbers of accepted tokens, by rule -------------------------------------------------------------------


def kept_by_ratio(p: Rows, q: Rows, path: tuple[int, ...], gamma: int) -> Fraction:
    """Ratio rule on a chain: at every depth sum of min(p, q), along the kept paths."""
    if gamma == 0:
        return ZERO
    return sum(
        (
            min(px, qx) * (1 + kept_by_ratio(p, q, (*path, x), gamma - 1))
            for x, (px, qx) in enumerate(zip(p(path), q(path), strict=True))
        ),
        ZERO,
    )


def kept_by_agreement(p: Rows, q: Rows, path: tuple[int, ...], gamma: int) -> Fraction:
    """Agreement on a chain: at every depth sum of p q."""
    if gamma == 0:
        return ZERO
    return sum(
        (
            px * qx * (1 + kept_by_agreement(p, q, (*path, x), gamma - 1))
            for x, (px, qx) in enumerate(zip(p(path), q(path), strict=True))
        ),
        ZERO,
    )


def kept_by_block(p: Rows, q: Rows, path: tuple[int, ...], gamma: int, weight: Fraction = ONE) -> Fraction:
    """Block verification: sum over prefixes of min(w q, w p), w being min(1, w p / q) along the prefix."""
    if gamma == 0:
        return ZERO
    kept = ZERO
    for x, (px, qx) in enumerate(zip(p(path), q(path), strict=True)):
        if qx:
            w = min(ONE, weight * px / qx)
            kept += qx * (w + kept_by_block(p, q, (*path, x), gamma - 1, w))
    return kept


def kept_first_of_iid(p: Row, q: Row, count: int) -> Fraction:
    """Independent candidates, one level: 1 - the product over trials of (1 - sum of min(r, q))."""
    r, refused = list(p), ONE
    for _ in range(count):
        overlap = sum((min(a, b) for a, b in zip(r, q, strict=True)), ZERO)
        refused *= 1 - overlap
        if not refused:
            break
        left = [a - min(a, b) for a, b in zip(r, q, strict=True)]
        r = [a / sum(left) for a in left]
    return 1 - refused
