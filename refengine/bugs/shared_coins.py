"""The exact law of a program whose coins are uniforms *by site*, as they are when a counter-based generator ships.

`exact.chance.Enumerate` gives every decision a fresh coin, so two decisions that share one look independent. Here each
site holds one uniform in [0, 1), known only as far as the decisions so far have told: an interval. A decision at a site
splits its interval, and a second decision there splits what the first one has left. The law that comes out is that of
the program with its shared coins, which is what a defect of coin addressing changes.

Written apart from `exact.chance`, because the checks run with defects in it.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)
Interval: TypeAlias = tuple[Fraction, Fraction]


@dataclass
class Coupled:
    """One run: the uniform of each site lies in its interval; `forced` names the pieces taken so far."""

    forced: tuple[int, ...]
    weight: Fraction = Fraction(1)
    coins: dict[Any, Interval] = field(default_factory=dict)
    taken: list[int] = field(default_factory=list)
    untaken: list[tuple[int, ...]] = field(default_factory=list)

    def accept(self, num: Any, den: Any, site: Any) -> bool:
        cut = min(Fraction(1), Fraction(num) / Fraction(den)) if den else Fraction(int(num > 0))
        return self._split(site, [cut, Fraction(1)]) == 0

    def choose(self, weights: Sequence[Any], site: Any) -> int:
        cdf = [Fraction(0)]
        for weight in weights:
            cdf.append(cdf[-1] + Fraction(weight))
        return self._split(site, [c / cdf[-1] for c in cdf[1:]])

    def _split(self, site: Any, edges: list[Fraction]) -> int:
        """The number of the piece between consecutive edges that the site's uniform falls into."""
        low, high = self.coins.get(site, (Fraction(0), Fraction(1)))
        pieces = {}
        for number, (left, right) in enumerate(zip([Fraction(0), *edges], edges, strict=False)):
            if max(left, low) < min(right, high):
                pieces[number] = (max(left, low), min(right, high))
        here = len(self.taken)
        if here < len(self.forced):
            piece = self.forced[here]
        else:
            piece, *rest = pieces
            self.untaken.extend((*self.taken, other) for other in rest)
        self.taken.append(piece)
        self.coins[site] = pieces[piece]
        self.weight *= (pieces[piece][1] - pieces[piece][0]) / (high - low)
        return piece


def coupled_law(program: Callable[[Any], T]) -> dict[T, Fraction]:
    """The law of `program(chance)` when equal sites share one uniform."""
    out: dict[T, Fraction] = {}
    pending: list[tuple[int, ...]] = [()]
    while pending:
        chance = Coupled(pending.pop())
        result = program(chance)
        pending.extend(chance.untaken)
        out[result] = out.get(result, Fraction(0)) + chance.weight
    return out
