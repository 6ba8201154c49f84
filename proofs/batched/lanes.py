"""One lane of a batch against the exact text: what is asked, and what is free."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import z3

from proofs.batched.tensor import Terms, entries, greatest_of
from proofs.batched.terms import ANY, ONE, Entry, Paths, Stray, Token, chosen, control, same
from proofs.smt.real import Atom, Real, Step, asked, term
from refengine.engine.block import Block as BatchedBlock
from refengine.exact import row as exact_row
from refengine.exact.block import Block, Round
from refengine.exact.card import Card

NOTHING = -1


class Row(tuple[Real, ...]):
    """A row of unknown numbers; at a token that is not decided, the one of whichever it is."""

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, Token) or at.known() is not None:
            return super().__getitem__(at)
        out = super().__getitem__(at.size - 1).term
        for value in reversed(range(at.size - 1)):
            out = chosen(at.world, whole=False)(at.equals(value), super().__getitem__(value).term, out)
        return Real(out, at.world)


@dataclass(frozen=True)
class Asked:
    """One decision of the exact text: its site, what it was asked between, and what came out."""

    site: tuple[Any, ...]
    odds: tuple[Any, ...]
    outcome: Any


@dataclass
class Trace:
    """The chance of one run of the exact text: every outcome that some rows give, in turn; a drawn token may be any."""

    world: Paths
    size: int
    asked: list[Asked] = field(default_factory=list)

    def accept(self, num: Any, den: Any, site: tuple[Any, ...]) -> bool:
        n, d = term(num), term(den)
        falls = self.world._branch([n > 0, n < d], lambda side: Step(side, None, ONE)) == 0
        self.asked.append(Asked(site, (n, d), falls))
        return falls

    def choose(self, weights: Sequence[Any], site: tuple[Any, ...]) -> Any:
        terms = tuple(term(w) for w in weights)
        if not self.world.possible(z3.Sum(terms) > 0):
            raise ValueError("no weight is positive")
        self.world.region.append(z3.Sum(terms) > 0)
        self.asked.append(Asked(site, terms, Token(f"y{len(self.asked)}", self.size, self.world)))
        return self.asked[-1].outcome


@dataclass
class Expected:
    """What the exact text does with one lane on one path: its decisions and its round, and the rows that lead there."""

    size: int
    parents: tuple[int, ...]
    asked: dict[tuple[Any, ...], Asked]
    round: Round
    rows: list[Atom]
    known: dict[str, int]
    proved: dict[Any, Any] = field(
        default_factory=dict
    )  # what was found alike; kept, so that no other term gets its number


def greatest(*values: Any, **options: Any) -> Any:
    """Python's max, which is a term where it is of terms."""
    if len(values) == 2 and any(isinstance(v, Real) for v in values):
        a, b = (term(v) for v in values)
        world = next(v.world for v in values if isinstance(v, Real))
        return Real(z3.If(a < b, b, a), world)
    return max(*values, **options)


def unknown_rows(name: str, count: int, size: int) -> list[list[Any]]:
    return [[z3.Real(f"{name}{i}[{v}]") for v in range(size)] for i in range(count)]


def expected(card: Card, size: int, parents: tuple[int, ...]) -> list[Expected]:
    """Every path of the exact text on a block of this shape, for all rows of nonnegative numbers and all tokens."""
    n = len(parents)
    p, q = unknown_rows("p", n + 1, size), unknown_rows("q", n, size)
    world = Paths(assumed=[x >= 0 for row in (*p, *q) for x in row])

    def run() -> Expected | None:
        chance = Trace(world, size)
        tokens = tuple(Token(f"x{j}", size, world) for j in range(n))
        rows = tuple(Row(Real(x, world) for x in row) for row in p)
        supplied = tuple(Row(Real(x, world) for x in row) if card.drawn else None for row in q)
        block = Block(tokens, parents, supplied, (None,) * n)  # type: ignore[arg-type]
        try:
            round = card.rule(rows, block, chance)
        except ValueError:
            return None  # the exact text has no law here
        sites = {a.site: a for a in chance.asked}
        conditions = [*world.assumed, *world.region, *world.region_of_names()]
        return Expected(size, parents, sites, round, conditions, dict(world.known))

    def argmax(weights: Sequence[Any]) -> Any:
        return greatest_of([term(w) for w in weights], world)

    # Python's max and the exact text's argmax, where they are of terms.
    module = inspect.getmodule(card.rule)
    with (
        mock.patch.object(exact_row, "max", greatest, create=True),
        mock.patch.object(module, "argmax", argmax, create=True),
    ):
        return [leaf.result for leaf in world.leaves(run) if leaf.result is not None]


class Differs(AssertionError):
    """The batched text does something else than the exact text."""


@dataclass
class Judge:
    """The coins of a batch: the judged lane gets what the exact text got there, once, for odds in proportion."""

    world: Paths
    lane: int
    lanes: int
    expected: Expected
    open: set[tuple[Any, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.open = set(self.expected.asked)

    def accept(self, num: Any, den: Any, site: Any) -> Terms:
        odds = (num.array[self.lane], den.array[self.lane])
        return self.answered(site, odds, accepts_alike, torch.bool, self.world.unknown)

    def choose(self, weights: Any, site: Any) -> Terms:
        drawn = lambda: Stray(self.world, drafted=True)  # noqa: E731
        return self.answered(site, tuple(weights.array[self.lane]), chooses_alike, torch.int64, drawn)

    def answered(
        self, site: Any, odds: Any, alike: Callable[[Any, Any], Atom], dtype: torch.dtype, free: Callable[[], Entry]
    ) -> Terms:
        here = tuple(part if isinstance(part, str | int) else int(part[self.lane]) for part in map(plain, site))
        answers = [free() for _ in range(self.lanes)]
        wanted = self.expected.asked.get(here)
        if wanted is not None:
            if here not in self.open:
                raise Differs(f"{here} is asked twice")
            self.open.discard(here)
            if any(o is ANY for o in odds) or control(*odds):
                raise Differs(f"{here} is decided by what may be anything")
            self.hold(odds, wanted, alike)
            answers[self.lane] = self.own(wanted.outcome)
        return Terms(entries((self.lanes,), lambda at: answers[at[0]]), dtype, self.world)

    def own(self, outcome: Any) -> Any:
        """A token of the exact run, as this run's."""
        return Token(outcome.name, outcome.size, self.world) if isinstance(outcome, Token) else outcome

    def hold(self, odds: Any, wanted: Asked, alike: Callable[[Any, Any], Atom]) -> None:
        """The odds are in proportion for all rows that lead here."""
        own = tuple(sorted((name, v) for name, v in self.world.known.items() if not name.startswith("?")))
        key = (wanted.site, own, tuple(o.get_id() if z3.is_expr(o) else o for o in odds))
        if key in self.expected.proved and not self.world.region:
            return
        goal = self.world.settled(alike(odds, wanted.odds))
        rows = [*self.world.assumed, *self.world.region, *self.world.region_of_names()]
        if goal is False or (goal is not True and asked([*rows, z3.Not(goal)]) is not None):
            raise Differs(f"the odds at {wanted.site} are others")
        if not self.world.region:
            self.expected.proved[key] = odds

    def same_round(self, found: Any) -> None:
        if self.open:
            raise Differs(f"{sorted(self.open, key=str)} are never asked")
        wanted = self.expected.round
        for name, values, ours in (("tokens", found.tokens, wanted.tokens), ("path", found.path, wanted.path)):
            lane = list(values.array[self.lane])
            full = [*(self.own(x) for x in ours), *[NOTHING] * (len(lane) - len(ours))]
            if len(lane) != len(full) or not all(self.alike(a, b) for a, b in zip(lane, full, strict=True)):
                raise Differs(f"{name} {lane} instead of {full}")
        if int(found.length.array[self.lane]) != len(wanted.tokens):
            raise Differs(f"length {found.length.array[self.lane]} instead of {len(wanted.tokens)}")

    def alike(self, a: Entry, b: Entry) -> bool:
        equal = same(self.world)(a, b)
        equal = self.world.settled(equal) if z3.is_expr(equal) else equal
        return not z3.is_expr(equal) and bool(equal)


def plain(part: Any) -> Any:
    return part.array if isinstance(part, Terms) else part


def accepts_alike(ours: Any, wanted: Any) -> Atom:
    (n, d), (m, e) = (tuple(term_of(x) for x in odds) for odds in (ours, wanted))
    return z3.And(n * e == m * d, n >= 0, d >= 0, (n > 0) == (m > 0), (d > 0) == (e > 0))


def chooses_alike(ours: Any, wanted: Any) -> Atom:
    if len(ours) != len(wanted):
        return z3.BoolVal(False)
    ours = [term_of(x) for x in ours]
    mass, right = z3.Sum(ours), z3.Sum(wanted)
    return z3.And(mass > 0, *(a * right == b * mass for a, b in zip(ours, wanted, strict=True)))


def term_of(entry: Entry) -> Any:
    if z3.is_expr(entry):
        return z3.If(entry, ONE, z3.RealVal(0)) if z3.is_bool(entry) else entry
    return term(entry)


@dataclass(frozen=True)
class Shape:
    """Two lanes: what hangs where in each, how many places there are, which lane is judged."""

    parents: tuple[tuple[int, ...], tuple[int, ...]]
    width: int
    lane: int


def run(rule: Callable[..., Any], path: Expected, shape: Shape, world: Paths, drawn: bool) -> None:
    """One run of the batched text; raises Differs."""
    judge = Judge(world, shape.lane, len(shape.parents), path)
    p, q = unknown_rows("p", len(path.parents) + 1, path.size), unknown_rows("q", len(path.parents), path.size)

    def token(at: tuple[int, ...]) -> Entry:
        lane, j = at
        if j >= len(shape.parents[lane]):
            return NOTHING
        return Token(f"x{j}", path.size, world) if lane == shape.lane else Stray(world, drafted=True)

    def parent(at: tuple[int, ...]) -> Entry:
        lane, j = at
        return shape.parents[lane][j] if j < len(shape.parents[lane]) else Stray(world, drafted=False)

    def of(rows: list[list[Any]]) -> Callable[[tuple[int, ...]], Entry]:
        return lambda at: rows[at[1]][at[2]] if at[0] == shape.lane and at[1] < len(rows) else ANY

    lanes, n = len(shape.parents), shape.width
    block = vars(inspect.getmodule(rule)).get("Block", BatchedBlock)(
        tokens=Terms(entries((lanes, n), token), torch.int64, world),
        parents=Terms(entries((lanes, n), parent), torch.int64, world),
        q=Terms(entries((lanes, n, path.size), of(q) if drawn else lambda at: ANY), torch.float64, world),
    )
    try:
        found = rule(Terms(entries((lanes, n + 1, path.size), of(p)), torch.float64, world), block, judge)
    except Differs:
        raise
    except (IndexError, LookupError, RuntimeError, ValueError, TypeError) as error:
        raise Differs(f"raises {type(error).__name__}: {error}") from error
    judge.same_round(found)


def difference(card: Card, rule: Callable[..., Any], shapes: Sequence[tuple[int, Shape]]) -> str:
    """Where the batched text differs from the exact text on these shapes, in one line; "" where it does not."""
    leaves: dict[tuple[int, tuple[int, ...]], list[Expected]] = {}
    for size, shape in shapes:
        own = shape.parents[shape.lane]
        if (size, own) not in leaves:
            leaves[size, own] = expected(card, size, own)
        for path in leaves[size, own]:
            world = Paths(assumed=list(path.rows), given=path.known)
            try:
                world.leaves(
                    lambda path=path, shape=shape, world=world: run(rule, path, shape, world, bool(card.drawn))
                )
            except Differs as error:
                return f"{card.name}, {size} tokens, {shape}: {error}"
        if not leaves[size, own] and not refused(rule, Expected(size, own, {}, Round((), ()), [], {}), shape):
            return f"{card.name}, {size} tokens, {shape}: the exact text refuses it, the batched text does not"
    return ""


def refused(rule: Callable[..., Any], block: Expected, shape: Shape) -> bool:
    world = Paths()
    try:
        world.leaves(lambda: run(rule, block, shape, world, True))
    except Differs as error:
        return "raises ValueError" in str(error)
    return False


def chains(longest: int) -> Iterator[tuple[int, ...]]:
    for n in range(longest + 1):
        yield tuple(range(-1, n - 1))


def trees(most: int) -> Iterator[tuple[int, ...]]:
    """Every way to hang up at most so many nodes."""
    level: list[tuple[int, ...]] = [()]
    for n in range(most + 1):
        yield from level
        level = [(*parents, parent) for parents in level for parent in range(-1, n)]


def shapes(card: Card, most: int) -> Iterator[Shape]:
    """Every block of at most so many nodes, beside blocks that are shorter, longer and hung up otherwise.

    There is one more place than both have where there is room. The judged lane is the first and the second in turn.
    """
    chain, fan = tuple(range(-1, most - 1)), (-1,) * min(most, 2)
    others = list(chains(most)) if card.shape == "chain" else [(), chain, fan]
    for at, own in enumerate(chains(most) if card.shape == "chain" else trees(most)):
        for turn, other in enumerate(others):
            lane = (at + turn) % 2
            width = min(most, max(len(own), len(other)) + 1)
            yield Shape((other, own) if lane else (own, other), width, lane)
    if card.shape == "chain":  # which is no chain, and refused
        yield Shape(((-1, -1), ()), 2, 0)
