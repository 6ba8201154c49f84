"""Symbolic chance: the probabilities of `refengine.exact.chance`, for symbolic odds.

Every site has one uniform u in [0, 1). A decision tells in which interval u lies; a second decision at the same site
sees only what is left of it. So a rule that uses one coin twice is executed as faithfully as one that does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import z3

from proofs.smt.real import Number, Term, World, term
from refengine.exact.chance import Site

ZERO, ONE = z3.RealVal(0), z3.RealVal(1)


class Impossible(ValueError):
    """A rule asks for a draw from weights that some rows make negative or empty."""


@dataclass
class SymbolicChance:
    """accept and choose, branching over outcomes with their exact symbolic probabilities."""

    world: World
    left: dict[Site, tuple[Term, Term]] = field(default_factory=dict)  # where the site's u still can be

    def accept(self, num: Number, den: Number, site: Site) -> bool:
        # u * den < num  iff  u < num / den; from num >= den on it is num > 0, whatever u.
        n, d = term(num), term(den)
        bar = n / d if self.world.holds(n < d) else ONE if self.world.holds(n > 0) else ZERO
        return self._fall(site, [ZERO, bar, ONE], [bar, 1 - bar]) == 0

    def choose(self, weights: Sequence[Number], site: Site) -> int:
        terms = [term(w) for w in weights]
        total = z3.simplify(z3.Sum(terms))
        if self.world.possible(z3.Or(total <= 0, *(w < 0 for w in terms))):
            raise Impossible(f"choose at {site}: not a distribution for all rows that lead here")
        cdf = [z3.simplify(z3.Sum(terms[:i]) / total) if i else ZERO for i in range(len(terms) + 1)]
        return self._fall(site, cdf, [w / total for w in terms])

    def _fall(self, site: Site, bars: Sequence[Term], unused: Sequence[Term]) -> int:
        """Which of the intervals [bars[i], bars[i + 1]) u falls into; `unused`: the odds of a coin not used before."""
        ends = list(pairwise(bars))
        odds = unused
        if site in self.left:
            low, high = self.left[site]
            ends = [(self._larger(low, a), self._smaller(high, b)) for a, b in ends]
            odds = [z3.If(b > a, (b - a) / (high - low), ZERO) for a, b in ends]
        outcome = self.world.fall(odds)
        self.left[site] = ends[outcome]
        return outcome

    def _larger(self, a: Term, b: Term) -> Term:
        return a if self.world.holds(a >= b) else b

    def _smaller(self, a: Term, b: Term) -> Term:
        return a if self.world.holds(a <= b) else b
