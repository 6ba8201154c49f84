"""Real: a number that stands for any real number, so that `refengine.exact` itself can be run on symbolic rows.

Arithmetic builds z3 terms. A comparison has to return a plain bool, because the rules branch on it: it asks the `World`
which side to take. So the program under test runs unchanged, once per consistent combination of comparisons and
chance, and what it computes on each path holds for every row in the region that the path's conditions describe.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import z3

Number: TypeAlias = Any  # Real, Fraction or int
Side: TypeAlias = tuple[Any, bool]  # an atom (z3 Bool) and whether it holds
BRANCH_MS = 2_000  # to find out that a branch is impossible; a branch that z3 gives up on is explored


@dataclass(frozen=True)
class Leaf:
    """The end of one path: what the program returned, in which region of the rows, with which probability there."""

    result: Any
    region: tuple["Side", ...]
    weight: Any  # z3 Real


@dataclass
class World:
    """The unknown reals, what is assumed of them, and the path that is being explored."""

    assumed: list[Any] = field(default_factory=list)
    forced: tuple[int, ...] = ()
    taken: list[int] = field(default_factory=list)
    untaken: list[tuple[int, ...]] = field(default_factory=list)
    region: list[Side] = field(default_factory=list)
    weight: Any = z3.RealVal(1)

    def unknown(self, name: str) -> "Real":
        return Real(z3.Real(name), self)

    def assume(self, condition: Any) -> None:
        if not any(condition.eq(known) for known in self.assumed):
            self.assumed.append(condition)

    def leaves(self, program: Callable[[], Any]) -> list[Leaf]:
        """Every path through `program`."""
        self.untaken, found = [()], []
        while self.untaken:
            self.forced, self.taken, self.region, self.weight = self.untaken.pop(), [], [], z3.RealVal(1)
            result = program()
            found.append(Leaf(result, tuple(self.region), self.weight))
        return found

    def branch(self, sides: Sequence[tuple[Side, Any]]) -> int:
        """Take one of the sides (condition, probability) that some row in the region allows; leave the others."""
        here = len(self.taken)
        if here < len(self.forced):
            side = self.forced[here]
        else:
            side, *others = [k for k, (condition, _) in enumerate(sides) if self.possible(condition)]
            self.untaken.extend((*self.taken, other) for other in others)
        condition, probability = sides[side]
        self.taken.append(side)
        self.region.append(condition)
        self.weight = z3.simplify(self.weight * probability)
        return side

    def possible(self, *more: Side) -> bool:
        """False only where z3 proves that no row in the region satisfies `more`."""
        solver = z3.Solver()
        solver.set("timeout", BRANCH_MS)
        solver.add(*self.assumed, *(literal(side) for side in (*self.region, *more)))
        return bool(solver.check() != z3.unsat)

    def holds(self, condition: Any) -> bool:
        atom = z3.simplify(condition)
        one = z3.RealVal(1)
        return self.branch([((atom, True), one), ((atom, False), one)]) == 0


def literal(side: Side) -> Any:
    atom, holds = side
    return atom if holds else z3.Not(atom)


@dataclass(eq=False)
class Real:
    """A z3 term with Python's arithmetic and comparisons."""

    term: Any
    world: World

    def __add__(self, other: Number) -> "Real":
        return Real(z3.simplify(self.term + term(other)), self.world)

    def __sub__(self, other: Number) -> "Real":
        return Real(z3.simplify(self.term - term(other)), self.world)

    def __rsub__(self, other: Number) -> "Real":
        return Real(z3.simplify(term(other) - self.term), self.world)

    def __mul__(self, other: Number) -> "Real":
        return Real(z3.simplify(self.term * term(other)), self.world)

    def __truediv__(self, other: Number) -> "Real":
        return Real(self.term / term(other), self.world)

    def __rtruediv__(self, other: Number) -> "Real":
        return Real(term(other) / self.term, self.world)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Number) -> bool:
        return self.world.holds(self.term < term(other))

    def __le__(self, other: Number) -> bool:
        return self.world.holds(self.term <= term(other))

    def __gt__(self, other: Number) -> bool:
        return self.world.holds(self.term > term(other))

    def __ge__(self, other: Number) -> bool:
        return self.world.holds(self.term >= term(other))

    def __eq__(self, other: object) -> bool:
        return self.world.holds(self.term == term(other))


def term(number: Number) -> Any:
    """The z3 term of a Real, a Fraction or an int."""
    if isinstance(number, Real):
        return number.term
    exact = Fraction(number)
    return z3.RatVal(exact.numerator, exact.denominator)
