"""What the exact text does with one lane, for all rows over every vocabulary: its paths, decisions and rounds."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from proofs.batched.masses import Mass, mass_of
from proofs.batched.modes import Mode, arguments
from proofs.batched.terms import ONE, OTHER, Paths, Token
from proofs.batched.words import Rest, Row, read_on_columns, term_of
from proofs.smt.real import Atom, Real, Step, term
from refengine.exact.block import Block, Round
from refengine.exact.card import Card

LEFT_NOTHING = 2  # nodes of the largest block that is asked about where a refusal leaves nothing: paths are many


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
    classes: int
    asked: list[Asked] = field(default_factory=list)

    def accept(self, num: Any, den: Any, site: tuple[Any, ...]) -> bool:
        n, d = term(num), term(den)
        falls = self.world._branch([n > 0, n < d], lambda side: Step(side, None, ONE)) == 0
        self.asked.append(Asked(site, (n, d), falls))
        return falls

    def choose(self, weights: Sequence[Any], site: tuple[Any, ...]) -> Any:
        terms = tuple(term(w) for w in weights)
        some = term_of(mass_of(terms, self.world)) > 0
        if isinstance(weights, Rest) and not self.world.holds(some):
            return self.choose(weights.of, site)  # see `words.normalised`
        if not self.world.possible(some):
            raise AssertionError(f"the exact text chooses at {site} between tokens of which none has weight")
        self.world.region.append(some)
        self.asked.append(Asked(site, terms, Token(f"y{len(self.asked)}", self.classes, self.world)))
        return self.asked[-1].outcome


@dataclass
class Expected:
    """What the exact text does with one lane on one path: its decisions and its round, and the rows that lead there.

    `same` has the class of each drafted token: those of one class are the same token.
    """

    same: tuple[int, ...]
    parents: tuple[int | None, ...]
    asked: dict[tuple[Any, ...], Asked]
    round: Round
    rows: list[Atom]
    known: dict[str, int]
    masses: dict[str, Mass]
    tops: dict[str, Any]
    weighed: dict[str, Mass] = field(default_factory=dict)  # by the batched text
    proved: dict[Any, Any] = field(
        default_factory=dict
    )  # what was found alike; kept, so that no other term gets its number


def unknown_rows(name: str, count: int, classes: int) -> list[list[Any]]:
    columns = [*(f"[{c}]" for c in range(classes)), OTHER]
    return [[z3.Real(f"{name}{i}{column}") for column in columns] for i in range(count)]


def expected(
    card: Card, mode: Mode, parents: tuple[int | None, ...], same: tuple[int, ...], drawn: bool = True
) -> list[Expected]:
    """Every path of the exact text on a block of this shape, for all vocabularies and rows of nonnegative numbers."""
    if None in parents:
        return []  # a block of the exact text has no such places
    n, classes = len(parents), len(set(same))
    p, q = unknown_rows("p", n + 1, classes), unknown_rows("q", n, classes)
    world = Paths(assumed=[x >= 0 for row in (*p, *(q if card.drawn else ())) for x in row], given=classes_of(same))

    def run() -> Expected | None:
        chance = Trace(world, classes)
        tokens = tuple(Token(f"x{j}", classes, world) for j in range(n))
        rows = tuple(Row(Real(x, world) for x in row) for row in p)
        supplied = tuple(Row(Real(x, world) for x in row) if card.drawn and drawn else None for row in q)
        block = Block(tokens, parents, supplied, (None,) * n)  # type: ignore[arg-type]
        try:
            round = card.rule(rows, block, chance, **arguments(mode, lambda number: Real(number, world)))
        except ValueError:
            return None  # the exact text has no law here
        sites = {a.site: a for a in chance.asked}
        conditions = [*world.assumed, *world.region, *world.region_of_names()]
        return Expected(
            same, parents, sites, round, conditions, dict(world.known), dict(world.masses), dict(world.tops)
        )

    with read_on_columns(inspect.getmodule(card.rule), world, classes, n <= LEFT_NOTHING):
        return [leaf.result for leaf in world.leaves(run) if leaf.result is not None]


def classes_of(same: tuple[int, ...]) -> dict[str, int]:
    columns = {f"column{c}": c for c in range(len(set(same)) + 1)}
    return {f"x{j}": c for j, c in enumerate(same)} | columns


def samenesses(n: int) -> Iterator[tuple[int, ...]]:
    """Which of n drafted tokens can be the same: the class of each, a new class being the next one."""
    if n == 0:
        yield ()
    for first in samenesses(n - 1) if n else ():
        yield from ((*first, c) for c in range(len(set(first)) + 1))
