"""When a block of DSpark ends: at a confidence that is too low, or where a loaded server gains nothing by going on.

The production scheduler is not released. This is its survival product in the form that keeps a rule lossless: whether
a position is drafted depends on the confidences up to it, none of which has seen its token. Choosing the best length
after the whole block is drawn looks past the tokens that it drops, and changes the law.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul
from typing import Protocol


class Cut(Protocol):
    """Whether the position of the last confidence is still drafted."""

    def __call__(self, confidences: Sequence[float]) -> bool: ...


@dataclass(frozen=True)
class Threshold:
    """DeepSpec's policy: while the confidence is at least this."""

    least: float

    def __call__(self, confidences: Sequence[float]) -> bool:
        return confidences[-1] >= self.least


@dataclass(frozen=True)
class Load:
    """While one more position makes the whole batch emit no fewer tokens a second.

    curve   the load curve: measured (rows of a verification pass, its seconds), rows ascending; straight in between,
            and beyond the ends as along the nearest piece
    rows    rows of the other requests in the batch
    tokens  tokens that those are expected to emit in the pass
    """

    curve: tuple[tuple[int, float], ...]
    rows: int = 0
    tokens: float = 0.0

    def __post_init__(self) -> None:
        rows, seconds = zip(*self.curve, strict=True) if self.curve else ((), ())
        if len(rows) < 2 or any(a >= b for a, b in pairwise(rows)) or min(seconds) <= 0:
            raise ValueError(f"a load curve is two or more points (rows, seconds > 0), rows ascending: {self.curve}")

    def __call__(self, confidences: Sequence[float]) -> bool:
        return self.speed(confidences) >= self.speed(confidences[:-1])

    def speed(self, confidences: Sequence[float]) -> float:
        """Expected tokens a second with these positions drafted: one, and the products of the confidences."""
        expected: float = self.tokens + 1 + sum(accumulate(confidences, mul))
        return expected / self.seconds(self.rows + 1 + len(confidences))

    def seconds(self, rows: int) -> float:
        """Of a pass over so many rows."""
        pieces = list(pairwise(self.curve))
        (a, low), (b, high) = next((piece for piece in pieces if rows <= piece[1][0]), pieces[-1])
        return low + (high - low) * (rows - a) / (b - a)
