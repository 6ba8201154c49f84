"""One lane of a batch against the exact text: what is asked, and what is free."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import z3

from proofs.batched.expected import Asked, Expected, classes_of, expected, samenesses, unknown_rows
from proofs.batched.masses import weighed
from proofs.batched.modes import Mode, arguments, modes, options, told
from proofs.batched.tensor import Fresh, Terms, entries
from proofs.batched.terms import ANY, NOTHING, Entry, Paths, Stray, Token, control, same
from proofs.batched.words import term_of
from proofs.smt.real import Atom
from refengine.engine.block import Block as BatchedBlock
from refengine.exact.block import Round
from refengine.exact.card import Card
from refengine.exact.rules import RULES

NODES = 3  # of the largest block of which every shape is asked about
LONGER = 5  # of one chain that is asked about besides, with distinct tokens and with one token


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
            self.hold(odds, wanted, partial(alike, world=self.world))
            answers[self.lane] = self.own(wanted.outcome)
        return Terms(entries((self.lanes,), lambda at: answers[at[0]]), dtype, self.world)

    def own(self, outcome: Any) -> Any:
        """A token of the exact run, as this run's."""
        return Token(outcome.name, outcome.classes, self.world) if isinstance(outcome, Token) else outcome

    def hold(self, odds: Any, wanted: Asked, alike: Callable[[Any, Any], Atom]) -> None:
        """The odds are in proportion for all rows that lead here."""
        own = tuple(sorted((name, v) for name, v in self.world.known.items() if not name.startswith("?")))
        key = (wanted.site, own, tuple(o.get_id() if z3.is_expr(o) else o for o in odds))
        if key in self.expected.proved and not self.world.region:
            return
        goal = self.world.settled(alike(odds, wanted.odds))
        rows = [*self.world.assumed, *self.world.region, *self.world.region_of_names()]
        if goal is False or (goal is not True and self.world.some(*rows, z3.Not(goal))):
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


def accepts_alike(ours: Any, wanted: Any, world: Paths) -> Atom:
    (n, d), (m, e) = (tuple(term_of(x) for x in odds) for odds in (ours, wanted))
    return z3.And(n * e == m * d, n >= 0, d >= 0, (n > 0) == (m > 0), (d > 0) == (e > 0))


def chooses_alike(ours: Any, wanted: Any, world: Paths) -> Atom:
    """At every token: drafted ones, and any other one."""
    if len(ours) != len(wanted):
        return z3.BoolVal(False)
    left, right = (weighed([term_of(e) for e in row], world) for row in (ours, wanted))
    proportions = [a * right.sum == b * left.sum for a, b in zip(left.columns, wanted, strict=True)]
    return z3.And(left.sum > 0, *proportions)


@dataclass(frozen=True)
class Shape:
    """Some lanes: what hangs where in each, how many places there are, which lane is judged.

    `same` has the class of each token that the judged lane drafted: those of one class are the same token. `drawn`
    says whether the block has a q, where the rule looks at one. A parent that is None is a place without a draft.
    """

    parents: tuple[tuple[int | None, ...], ...]
    width: int
    lane: int
    same: tuple[int, ...]
    drawn: bool = True


class Unread(tuple[Any, ...]):
    """Where drafts were drawn, which is nothing to a rule."""

    def _read(self, *_: Any) -> Any:
        raise Differs("it looks at the sites of the draws")

    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = __eq__ = __add__ = _read
    __hash__ = None  # type: ignore[assignment]


def run(rule: Callable[..., Any], mode: Mode, path: Expected, shape: Shape, world: Paths, weighs: bool) -> None:
    """One run of the batched text; raises Differs. weighs: whether the rule looks at q."""
    judge = Judge(world, shape.lane, len(shape.parents), path)
    classes = len(set(path.same))
    p, q = unknown_rows("p", len(path.parents) + 1, classes), unknown_rows("q", len(path.parents), classes)

    def there(lane: int, j: int) -> bool:
        return j < len(shape.parents[lane]) and shape.parents[lane][j] is not None

    def token(at: tuple[int, ...]) -> Entry:
        lane, j = at
        if not there(lane, j):
            return NOTHING
        return Token(f"x{j}", classes, world) if lane == shape.lane else Stray(world, drafted=True)

    def parent(at: tuple[int, ...]) -> Entry:
        lane, j = at
        return shape.parents[lane][j] if there(lane, j) else Stray(world, drafted=False)

    def of(rows: list[list[Any]]) -> Callable[[tuple[int, ...]], Entry]:
        return lambda at: rows[at[1]][at[2]] if at[0] == shape.lane and at[1] < len(rows) else ANY

    lanes, n = len(shape.parents), shape.width
    block = rule.__globals__.get("Block", BatchedBlock)(
        tokens=Terms(entries((lanes, n), token), torch.int64, world),
        parents=Terms(entries((lanes, n), parent), torch.int64, world),
        q=Terms(entries((lanes, n, classes + 1), of(q) if weighs else lambda at: ANY), torch.float32, world, rows=True)
        if shape.drawn
        else None,
        sites=Unread(),
    )
    given = arguments(mode, lambda number: Terms(entries((), lambda at: number), torch.float64, world))
    try:
        rows = Terms(entries((lanes, n + 1, classes + 1), of(p)), torch.float32, world, rows=True)
        world.handed = [part.array for part in (rows, block.tokens, block.parents, block.q) if part is not None]
        with Fresh(world):
            found = rule(rows, block, judge, **given)
    except Differs:
        raise
    except (NotImplementedError, IndexError, LookupError, RuntimeError, ValueError, TypeError) as error:
        raise Differs(f"{place_of(error)}raises {type(error).__name__}: {error}") from error
    judge.same_round(found)


def place_of(error: BaseException) -> str:
    """The line of the engine's text at which it was refused, as "row.py, line 7, `text`: "."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/engine/" in f.filename]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}, `{frames[-1].line}`: " if frames else ""


def difference(card: Card, rule: Callable[..., Any]) -> str:
    """Where the batched text differs from the exact text in some mode, on some shape, in one line; "" if nowhere."""
    every = (difference_in(card, rule, mode, shapes(card, mode)) for mode in modes(card.rule))
    return next(filter(None, every), "")


def difference_in(card: Card, rule: Callable[..., Any], mode: Mode, shapes: Iterable[Shape]) -> str:
    """Where it differs in one mode, on these shapes, or what it does where an option is not said."""
    if options(rule) != options(card.rule):
        return f"{card.name}: its options are {options(rule)}, those of the exact text {options(card.rule)}"
    name, own_paths = told(card.name, mode), cache(partial(afresh, card, tuple(mode.items())))
    for shape in shapes:
        own = shape.parents[shape.lane]
        paths = own_paths(own, shape.same, shape.drawn)
        for path in paths:
            assumed = [*path.rows, *(fact for mass in path.weighed.values() for fact in mass.facts)]
            world = Paths(
                assumed=assumed,
                given=path.known,
                given_masses=path.masses,
                given_tops=path.tops,
                weighed=path.weighed,
            )
            try:
                world.leaves(partial(run, rule, mode, path, shape, world, bool(card.drawn)))
            except Differs as error:
                return f"{name}, {shape}: {error}"
        if not paths and not refused(rule, mode, shape):
            return f"{name}, {shape}: the exact text refuses it, the batched text does not"
    return ""


def afresh(card: Card, mode: tuple[tuple[str, Any], ...], *block: Any) -> list[Expected]:
    """What the exact text does on a block, without what was found of any batched text."""
    return [replace(path, weighed={}, proved={}) for path in exact_paths(card.name, mode, *block)]


@cache
def exact_paths(rule: str, mode: tuple[tuple[str, Any], ...], *block: Any) -> list[Expected]:
    """The same of every text that it is compared with: of each mistake in it too."""
    return expected(RULES[rule], dict(mode), *block)


def refused(rule: Callable[..., Any], mode: Mode, shape: Shape) -> bool:
    world = Paths(given=classes_of(shape.same))
    block = Expected(shape.same, shape.parents[shape.lane], {}, Round((), ()), [], world.given, {}, {})
    try:
        world.leaves(lambda: run(rule, mode, block, shape, world, True))
    except Differs as error:
        return "raises ValueError" in str(error)
    return False


def chains(longest: int) -> Iterator[tuple[int, ...]]:
    for n in range(longest + 1):
        yield tuple(range(-1, n - 1))


def no_chains(longest: int) -> Iterator[tuple[int | None, ...]]:
    """Of two nodes at least: with one node hung up elsewhere, and with one place left without a draft."""
    for n in range(2, longest + 1):
        chain = tuple(range(-1, n - 1))
        for at in range(1, n):
            yield from ((*chain[:at], parent, *chain[at + 1 :]) for parent in range(-1, at - 1))
            yield (*chain[: at - 1], None, *chain[at:])


def trees(most: int) -> Iterator[tuple[int, ...]]:
    """Every way to hang up at most so many nodes."""
    level: list[tuple[int, ...]] = [()]
    for n in range(most + 1):
        yield from level
        level = [(*parents, parent) for parents in level for parent in range(-1, n)]


def shapes(card: Card, mode: Mode, most: int = NODES) -> Iterator[Shape]:
    """Every block of at most so many nodes, the small ones first, beside shorter, longer and other ones.

    Where all drafted tokens are distinct it stands beside each of the other blocks, else beside one of them in turn.
    There is one more place than both have where there is room. The judged lane is the first and the second in turn.

    A rule with options is dearer to ask about: its blocks of `most` nodes have distinct tokens. The chain of them comes
    first and stands beside another, the trees beside an empty lane, and where a switch is on there are none of these.
    """
    chain, fan = tuple(range(-1, most - 1)), (-1,) * min(most, 2)
    others = list(chains(most)) if card.shape == "chain" else [(), chain, fan]
    if mode:
        yield Shape((chain, chain), most, 0, tuple(range(most)))
    for at, own in enumerate(chains(most) if card.shape == "chain" else trees(most)):
        dear = bool(mode) and len(own) == most
        if dear and (own == chain or any(value is True for value in mode.values())):
            continue
        for turn, pattern in enumerate(reversed(list(samenesses(len(own))))):
            if dear and turn:
                continue
            for other in [()] if dear else others if turn == 0 else [others[(at + turn) % len(others)]]:
                lane = (at + turn + len(other)) % 2
                width = min(most, max(len(own), len(other)) + 1)
                yield Shape((other, own) if lane else (own, other), width, lane, pattern)
    yield Shape(((), ()), 0, 0, ())  # nothing was drafted, and there is no place for it
    yield Shape(
        ((-1,), (), (-1,)), 2, 2, (0,)
    )  # what is right of two lanes may be wrong of the third, and of nodes too
    if not mode and card.name != "block":  # whose weights are products, and dear
        for tokens in (tuple(range(LONGER)), (0,) * LONGER):
            yield Shape((tuple(range(-1, LONGER - 1)), ()), LONGER, 0, tokens)
    if card.shape == "chain":  # what is none is refused, wherever it shows and in either lane
        for at, own in enumerate(no_chains(most)):
            for lane in (0, 1):
                other = ((), chain)[(at + lane) % 2]
                yield Shape((other, own) if lane else (own, other), most, lane, tuple(range(len(own))))
    if card.drawn:  # and nothing was: refused too
        yield Shape(((-1,), ()), 1, 0, (0,), drawn=False)
