"""What a batch is filled with here: real terms of z3, tokens that may be any token, and anything at all.

Control is concrete: a token or a condition that decides where the text goes takes each of its values in turn, as the
paths of `World` do. Arithmetic is not: a row's numbers stay terms.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import z3

from proofs.smt.real import Atom, GaveUp, Leaf, Step, World

Entry: TypeAlias = Any  # int, bool, Fraction, float, a z3 term, a Token, a Stray or ANY
ONE = z3.RealVal(1)
NOTHING = -1  # what stands in the place of a token where there is none
OTHER = "[*]"  # ends the name of what a row holds at a token that nobody drafted


class Anything:
    """A number of which nothing is known. What is computed from it is anything, what is asked of it may hold or not."""

    def __repr__(self) -> str:
        return "anything"


ANY = Anything()


@dataclass
class Paths(World):
    """A `World` that also takes free choices, which no row makes impossible, and remembers the tokens it decided."""

    given: dict[str, int] = field(default_factory=dict)  # what is known of names before a path begins
    known: dict[str, int] = field(default_factory=dict)
    count: int = 0  # of the unknowns of this path
    made: int = 0  # tensors, on this path
    implied: dict[int, tuple[Atom, bool]] = field(default_factory=dict)  # what `assumed` alone decides
    weighed: dict[str, Any] = field(
        default_factory=dict
    )  # the masses that were taken, by name; their facts are assumed
    masses: dict[str, Any] = field(default_factory=dict)  # those of them that were taken on this path
    given_masses: dict[str, Any] = field(default_factory=dict)  # that were taken before a path begins
    tops: dict[str, Any] = field(default_factory=dict)  # the rows whose greatest token was asked for on this path
    given_tops: dict[str, Any] = field(default_factory=dict)  # and before it begins
    surely: dict[int, tuple[Atom, bool]] = field(default_factory=dict)  # what `assumed` alone is, or is not, enough for
    scaled: set[tuple[str, int]] = field(default_factory=set)  # the powers of two that are assumed to be positive
    handed: list[Any] = field(default_factory=list)  # the arrays that the rule of this path was given
    words: dict[int, Atom] | None = None  # what was assumed at first, simplified; kept, as no other gets its number
    guards: list[tuple[Any, Atom]] | None = None  # entries that a sum looks at, and on which condition; None: no sum is

    def leaves(self, program: Callable[[], Any]) -> list[Leaf]:
        def afresh() -> Any:
            self.known, self.count, self.made, self.masses, self.tops = dict(self.given), 0, 0, {}, {}
            return program()

        return super().leaves(afresh)

    def free(self, count: int) -> int:
        """Each of 0 .. count - 1 in turn."""
        side = self.forced[len(self.path)] if len(self.path) < len(self.forced) else 0
        if len(self.path) >= len(self.forced):
            past = tuple(step.side for step in self.path)
            self.untaken.extend((*past, other) for other in range(1, count))
        self.path.append(Step(side, None, ONE))
        return side

    def decided(self, name: str, count: int) -> int:
        """The value of a name, the same whenever it is asked for."""
        if name not in self.known:
            self.known[name] = self.free(count)
        return self.known[name]

    def unknown(self) -> Atom:
        """A condition that may hold or not."""
        self.count += 1
        return z3.Bool(f"?{self.count}")

    def settled(self, term: Entry) -> Entry:
        """A term with what is known put in, simplified; a condition that is decided is a bool."""
        found = {c.decl().name(): c for c in names(term)}
        known = [(c, z3.BoolVal(v)) for name, c in found.items() if (v := self.truth(name)) is not None]
        out = z3.simplify(z3.substitute(term, *known) if known else term)
        return True if z3.is_true(out) else False if z3.is_false(out) else out

    def truth(self, name: str) -> bool | None:
        token, _, value = name.partition("=")
        if token not in self.known:
            return None
        return self.known[token] == int(value) if value else bool(self.known[token])

    def forced_bool(self, entry: Entry) -> bool:
        """True or False: where neither is known, both in turn."""
        while z3.is_expr(entry):
            entry = self.settled(entry)
            open_names = names(entry) if z3.is_expr(entry) else []
            if open_names:
                refuse_others(open_names[0])
                token, _, value = open_names[0].decl().name().partition("=")
                self.decided(token, CLASSES.get(token, 1) + 1 if value else 2)
            elif z3.is_expr(entry):
                return self.compared(entry)
        return self.free(2) == 1 if entry is ANY else bool(entry)

    def compared(self, atom: Atom) -> bool:
        """Whether a condition on rows holds: where the rows do not tell, both in turn."""
        refuse_others(atom)
        if atom.get_id() not in self.implied and (said := self.said(atom)) is not None:
            self.implied[atom.get_id()] = (atom, said)
        if atom.get_id() not in self.implied:
            sides = [self.some(*self.assumed, side) for side in (atom, z3.Not(atom))]
            if all(sides):
                return self.holds(atom)
            self.implied[atom.get_id()] = (atom, sides[0])
        return self.implied[atom.get_id()][1]

    def said(self, atom: Atom) -> bool | None:
        """Whether it, or its opposite, is assumed word for word: a question less for z3."""
        if self.words is None:
            self.words = {simple.get_id(): simple for simple in map(simple, self.assumed)}
        sides = [simple(side).get_id() in self.words for side in (atom, z3.Not(atom))]
        return sides[0] if any(sides) else None

    def always(self, goal: Atom) -> bool:
        """`sure`, and remembered."""
        if goal.get_id() not in self.surely:
            self.surely[goal.get_id()] = (goal, self.sure(goal))
        return self.surely[goal.get_id()][1]

    def _branch(self, conditions: Sequence[Atom], step: Callable[[int], Step]) -> int:
        refuse_others(*conditions)
        return super()._branch(conditions, step)

    def sure(self, goal: Atom, *also: Atom) -> bool:
        """Whether what is assumed is enough for it; not where z3 cannot tell."""
        try:
            return not self.some(*self.assumed, *also, z3.Not(goal))
        except GaveUp:
            return False

    def region_of_names(self) -> list[Atom]:
        """What is known of names, as conditions on the Booleans that terms are made of."""
        out = []
        for token, value in self.known.items():
            out += [z3.Bool(f"{token}={v}") == (v == value) for v in range(CLASSES.get(token, 0))]
        return out


def refuse_others(*conditions: Atom) -> None:
    """What is shown at one token that nobody drafted is shown at all of them, as long as no path depends on it."""
    if any(c.decl().name().endswith(OTHER) for condition in conditions for c in unknowns(condition)):
        raise LookupError("what happens depends on what a row holds at one token that nobody drafted")


UNKNOWNS: dict[int, tuple[Any, list[Any]]] = {}


def unknowns(term: Entry) -> list[Any]:
    """The constants of a term that stand for anything, in the order of their names."""
    if term.get_id() not in UNKNOWNS:
        UNKNOWNS[term.get_id()] = (term, unknowns_in(term))  # kept, so that no other term gets its number
    return UNKNOWNS[term.get_id()][1]


def unknowns_in(term: Entry) -> list[Any]:
    seen, found, todo = set[int](), [], [term]
    while todo:
        node = todo.pop()
        if node.get_id() in seen:
            continue
        seen.add(node.get_id())
        if z3.is_const(node) and node.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found.append(node)
        todo.extend(node.children())
    return sorted(found, key=lambda c: str(c.decl().name()))


def names(term: Entry) -> list[Any]:
    """The Boolean constants of a term."""
    return [c for c in unknowns(term) if z3.is_bool(c)]


class Token:
    """Any token of a vocabulary of any size: one of the drafted ones, by its class, or any other one.

    Nothing but whether two tokens are the same can be asked of it: which number it has is not known.
    """

    def __init__(self, name: str, classes: int, world: "Paths") -> None:
        self.name, self.classes, self.world = name, classes, world
        CLASSES[name] = classes

    def column(self) -> int:
        """Its class, or `classes` for a token that nobody drafted; each in turn where that is open."""
        return self.world.decided(self.name, self.classes + 1)

    def known(self) -> int | None:
        return self.world.known.get(self.name)

    def equals(self, other: Entry) -> Entry:
        """A condition, or a bool where it is known."""
        if not isinstance(other, Token):
            if other != NOTHING:
                raise LookupError(f"{self} is compared with the number {other}")
            return False
        if other.name == self.name:
            return True
        here, there = self.known(), other.known()
        if None not in (here, there) and (here != there or here != self.classes):
            return here == there
        for known, open_ in ((here, other), (there, self)):
            if known is not None and known < self.classes and open_.known() is None:
                return z3.Bool(f"{open_.name}={known}")
        # Two tokens that nobody drafted may be the same. That equality is transitive is not assumed.
        return z3.Bool("~".join(sorted((self.name, other.name))))

    def __index__(self) -> int:
        raise LookupError(f"{self} is used as a number")

    def __eq__(self, other: object) -> bool:
        return self.world.forced_bool(self.equals(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name if self.known() is None else f"{self.name} of class {self.known()}"


CLASSES: dict[str, int] = {}  # how many classes of drafted tokens there are where a token is spoken of


class Stray:
    """An integer of which nothing is known, but `drafted`: that it is a token, so not negative."""

    def __init__(self, world: Paths, drafted: bool) -> None:
        self.world, self.drafted = world, drafted

    def equals(self, other: Entry) -> Entry:
        return False if self.drafted and not isinstance(other, Token | Stray) and other < 0 else self.world.unknown()

    def __repr__(self) -> str:
        return "any token" if self.drafted else "any integer"


def control(*entries: Entry) -> bool:
    """Whether one of them is a token, or may be any integer."""
    return any([isinstance(e, CONTROL) for e in entries])  # noqa: C419  (each entry of each tensor comes here)


CONTROL = Token, Stray


# ---- one entry at a time -------------------------------------------------------------------------------------------


def real(entry: Entry) -> Entry:
    """As a real term; a condition counts 1 where it holds."""
    if z3.is_expr(entry):
        return z3.If(entry, ONE, z3.RealVal(0)) if z3.is_bool(entry) else entry
    return constant(entry)


@cache
def constant(number: int | float | Fraction) -> Any:
    exact = Fraction(number)
    return z3.RatVal(exact.numerator, exact.denominator)


def symbolic(*entries: Entry) -> bool:
    return any([isinstance(e, z3.ExprRef) for e in entries])  # noqa: C419


# What was made of two terms, and what a term is simplified: a text runs once for each of its paths, and makes most of
# its terms on all of them. By z3's numbers of the terms, which are kept, so that no others get these numbers.
MADE: dict[tuple[Callable[[Any, Any], Any], int, int], tuple[Any, Any, Any]] = {}
SIMPLE: dict[int, tuple[Any, Any]] = {}


def remembered(word: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    key = word, a.get_id(), b.get_id()
    if key not in MADE:
        MADE[key] = word(a, b), a, b
    return MADE[key][0]


def simple(term: Any) -> Any:
    number = term.get_id()
    if number not in SIMPLE:
        SIMPLE[number] = z3.simplify(term), term
    return SIMPLE[number][0]


def computed(word: Callable[[Any, Any], Any], idle: int | None = None) -> Callable[[Entry, Entry], Entry]:
    """The word on two numbers; on the right, `idle` changes nothing."""

    def of(a: Entry, b: Entry) -> Entry:
        if isinstance(b, int | float | Fraction) and b == idle and not isinstance(a, bool):
            return a
        if a is ANY or b is ANY:
            return ANY
        if control(a, b):
            raise LookupError("a token is no number")
        return remembered(word, real(a), real(b)) if symbolic(a, b) else word(exactly(a), exactly(b))

    return of


def exactly(entry: Entry) -> Entry:
    return Fraction(entry) if isinstance(entry, float) else entry


def compared(word: Callable[[Any, Any], Any], world: Paths) -> Callable[[Entry, Entry], Entry]:
    def of(a: Entry, b: Entry) -> Entry:
        if any(e is ANY or isinstance(e, Stray) for e in (a, b)):
            return world.unknown()
        if control(a, b):
            raise LookupError("a token is compared as a number")
        return remembered(word, real(a), real(b)) if symbolic(a, b) else word(a, b)

    return of


def same(world: Paths) -> Callable[[Entry, Entry], Entry]:
    def of(a: Entry, b: Entry) -> Entry:
        if control(a, b):
            first, second = (a, b) if isinstance(a, Stray) or not control(b) else (b, a)
            return first.equals(second)
        return compared(operator.eq, world)(a, b)

    return of


def both(a: Entry, b: Entry) -> Entry:
    if symbolic(a, b):
        return False if a is False or b is False else b if a is True else a if b is True else z3.And(a, b)
    return a and b


def either(a: Entry, b: Entry) -> Entry:
    if symbolic(a, b):
        return True if a is True or b is True else b if a is False else a if b is False else z3.Or(a, b)
    return a or b


def opposite(a: Entry) -> Entry:
    return z3.Not(a) if symbolic(a) else not a


def chosen(world: Paths, whole: bool) -> Callable[[Entry, Entry, Entry], Entry]:
    """`a if c else b`; where whole numbers or tokens are chosen between, c is decided."""

    def of(c: Entry, a: Entry, b: Entry) -> Entry:
        if not symbolic(c) or a is b:
            return a if c is True or a is b else b
        if all(isinstance(e, bool) or z3.is_bool(e) for e in (a, b)):
            return either(both(c, a), both(opposite(c), b))
        if whole or control(a, b):
            return a if world.forced_bool(c) else b
        if a is ANY or b is ANY:
            settled = world.settled(c)
            return (a if settled else b) if isinstance(settled, bool) else ANY
        return z3.If(c, real(a), real(b))

    return of
