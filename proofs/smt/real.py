"""Real: a number that stands for any real number, so that `refengine.exact` itself can be run on symbolic rows.

Arithmetic builds z3 terms. A comparison has to return a plain bool, because the rules branch on it: it asks the `World`
which side to take. So the program under test runs unchanged, once per consistent combination of comparisons and of
chance, and together the paths say what it does for every real row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import z3

Number: TypeAlias = Any  # Real, Fraction or int
Term: TypeAlias = Any  # a z3 real
Atom: TypeAlias = Any  # a z3 bool
# z3's own count of its work on one question, the same on every machine. The hardest question takes 361 thousand; one
# that is not answered within the budget fails its test: no question is left out, and no path is explored for nothing.
RESOURCES = 10_000_000
z3.z3.Z3_DEBUG = False  # z3 itself refuses what is not well-typed, so its Python side need not
POINTS = 4  # rows that are tried before z3 is asked
# What was answered, by z3's numbers of the conditions, which are kept, so that no others get these numbers: a text with
# a mistake in it asks what the text without it asked, up to where they part.
ANSWERED: dict[tuple[int, ...], tuple[Sequence["Atom"], bool]] = {}


class GaveUp(RuntimeError):
    """z3 has used up its budget on a question: nothing is known about the answer."""


def asked(conditions: Sequence[Atom], resources: int = RESOURCES) -> z3.ModelRef | None:
    """A model of all the conditions, or None where there is none; raises GaveUp where z3 cannot tell."""
    solver = z3.SolverFor("NRA")
    solver.set("rlimit", resources)
    solver.add(*conditions)
    answer = solver.check()
    if answer == z3.unknown:
        raise GaveUp(f"z3 cannot tell within {resources} units of work ({solver.reason_unknown()})")
    return solver.model() if answer == z3.sat else None


@dataclass(frozen=True)
class Point:
    """Rows that answered a question, and the conditions that they were seen to meet or not, by z3's numbers."""

    rows: z3.ModelRef
    seen: dict[int, tuple[Atom, bool]] = field(default_factory=dict)

    def meets(self, condition: Atom) -> bool:
        number = condition.get_id()
        if number not in self.seen:
            self.seen[number] = condition, z3.is_true(self.rows.eval(condition, model_completion=True))
        return self.seen[number][1]


@dataclass(frozen=True)
class Step:
    """One branching on a path: a comparison (`atom`, side 0 where it holds) or chance (atom None, its probability)."""

    side: int
    atom: Atom | None
    probability: Term


@dataclass(frozen=True)
class Leaf:
    """The end of one path: what the program returned after these steps."""

    result: Any
    path: tuple[Step, ...]


@dataclass
class World:
    """The unknown reals, what is assumed of them, and the path that is being explored."""

    assumed: list[Atom] = field(default_factory=list)
    forced: tuple[int, ...] = ()
    untaken: list[tuple[int, ...]] = field(default_factory=list)
    path: list[Step] = field(default_factory=list)
    region: list[Atom] = field(default_factory=list)
    points: list["Point"] = field(default_factory=list)  # rows that answered a question lately

    def leaves(self, program: Callable[[], Any]) -> list[Leaf]:
        """Every path through `program`."""
        self.untaken, found = [()], []
        while self.untaken:
            self.forced, self.path, self.region = self.untaken.pop(), [], []
            found.append(Leaf(program(), tuple(self.path)))
        return found

    def holds(self, condition: Atom) -> bool:
        """Branch on a comparison."""
        atom = z3.simplify(condition)
        return self._branch([atom, z3.Not(atom)], lambda side: Step(side, atom, None)) == 0

    def fall(self, probabilities: Sequence[Term]) -> int:
        """Branch on chance, leaving out what is impossible everywhere in the region."""
        odds = [z3.simplify(p) for p in probabilities]
        return self._branch([p > 0 for p in odds], lambda side: Step(side, None, odds[side]))

    def possible(self, *more: Atom) -> bool:
        """Whether some row in the region satisfies `more`."""
        return self.some(*self.assumed, *self.region, *more)

    def some(self, *conditions: Atom) -> bool:
        """Whether some rows satisfy all the conditions; raises GaveUp where z3 cannot tell."""
        numbers = tuple(condition.get_id() for condition in conditions)
        if numbers not in ANSWERED:
            ANSWERED[numbers] = (conditions, self._some(conditions))
        return ANSWERED[numbers][1]

    def _some(self, conditions: Sequence[Atom]) -> bool:
        """Rows that answered an earlier question answer this one too at times."""
        for point in self.points:
            if all(map(point.meets, reversed(conditions))):
                return True
        if (found := asked(conditions)) is None:
            return False
        self.points = [Point(found), *self.points[: POINTS - 1]]
        return True

    def _branch(self, conditions: Sequence[Atom], step: Callable[[int], Step]) -> int:
        if len(self.path) < len(self.forced):
            side = self.forced[len(self.path)]
        else:
            side, *others = [k for k, condition in enumerate(conditions) if self.possible(condition)]
            past = tuple(step.side for step in self.path)
            self.untaken.extend((*past, other) for other in others)
        self.path.append(step(side))
        self.region.append(conditions[side])
        return side


@dataclass(eq=False)
class Real:
    """A z3 term with Python's arithmetic and comparisons."""

    term: Term
    world: World

    def __add__(self, other: Number) -> "Real":
        return Real(z3.simplify(self.term + term(other)), self.world)

    def __sub__(self, other: Number) -> "Real":
        return Real(z3.simplify(self.term - term(other)), self.world)

    def __rsub__(self, other: Number) -> "Real":
        return Real(z3.simplify(term(other) - self.term), self.world)

    def __neg__(self) -> "Real":
        return Real(z3.simplify(-self.term), self.world)

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


def term(number: Number) -> Term:
    """The z3 term of a Real, a Fraction or an int."""
    if isinstance(number, Real):
        return number.term
    exact = Fraction(number)
    return z3.RatVal(exact.numerator, exact.denominator)
