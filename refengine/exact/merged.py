"""Exact laws with equal states merged: the same law as `law.law`, without walking every path.

A path of `chance.Enumerate` is one value for every decision. Here one run stands for all paths that take the same
turns: tokens stay unknown (`unknowns.py`) until the program looks at one, a coin is a factor that depends on them, and
what the run is worth is a sum of products, in which each token is summed away as soon as no later factor depends on it:
all histories that differ in nothing else are then one state. Between rounds the state is what the rest depends on: the
tokens that the law is of, and the last tokens that the tables look at.

The text of rules, drafters and loop is the one that is walked; only `exact.row`'s arithmetic is done in every case of
the unknown tokens. Nothing is assumed about a rule: what it looks at splits the run. No mass may be missing at the end.
"""

import sys
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from refengine.exact import drafters as table_drafters
from refengine.exact.block import Rule, target_rows
from refengine.exact.chance import Chance, Outcome, Site, Weight, check_odds, ratio
from refengine.exact.law import Law, Tokens, completed
from refengine.exact.unknowns import (
    Cells,
    Key,
    Token,
    Value,
    as_value,
    matched,
    opened,
    pointwise,
    put_in,
    recent,
    table,
    values_of,
)

MASS_SLACK = 1e-9  # of float64 weights; with Fractions no mass may be missing at all


class Impossible(Exception):
    """This run has no probability: it turned where coins cannot go."""


@dataclass
class Factors:
    """A distribution over unknown tokens: the product of its parts."""

    parts: list[tuple[tuple[int, ...], Cells]] = field(default_factory=list)

    def add(self, value: Any) -> None:
        """A factor; its zeros are left out, so that no later case is computed for them."""
        axes, cells = (value.axes, value.cells) if isinstance(value, Value) else ((), {(): value})
        self.parts.append((axes, {key: cell for key, cell in cells.items() if cell > 0}))

    def onto(self, keep: Iterable[int]) -> Cells:
        """The mass of every value of the axes `keep`, in that order; every other axis is summed away, the one first
        whose sum has the fewest axes."""
        kept, parts = tuple(keep), list(self.parts)
        left = {axis for axes, _ in parts for axis in axes} - set(kept)
        while left:
            _, axis = min((len({a for axes, _ in parts if i in axes for a in axes}), i) for i in left)
            touched = [part for part in parts if axis in part[0]]
            parts = [part for part in parts if axis not in part[0]]
            parts.append(summed(product(touched), axis))
            left.remove(axis)
        axes, cells = product(parts)
        order = [axes.index(axis) for axis in kept]
        return {tuple(key[i] for i in order): mass for key, mass in cells.items()}


def product(parts: list[tuple[tuple[int, ...], Cells]]) -> tuple[tuple[int, ...], Cells]:
    """The product of factors, as one."""
    axes: tuple[int, ...] = ()
    cells: Cells = {(): 1}
    for more, other in sorted(parts, key=lambda part: len(part[0])):
        axes, pairs = matched(axes, cells, more, other)
        cells = {key: a * b for key, a, b in pairs}
    return axes, cells


def summed(part: tuple[tuple[int, ...], Cells], axis: int) -> tuple[tuple[int, ...], Cells]:
    """A factor with one axis summed away: the states that differed in it become one."""
    axes, cells = part
    at = axes.index(axis)
    out: Cells = {}
    for key, mass in cells.items():
        rest = (*key[:at], *key[at + 1 :])
        out[rest] = out.get(rest, 0) + mass
    return (*axes[:at], *axes[at + 1 :]), out


@dataclass(eq=False)
class Merging:
    """One run: follow the turns in `forced`, then the first open one at each new turn; like `chance.Enumerate`."""

    forced: tuple[Any, ...] = ()
    taken: list[Any] = field(default_factory=list)
    untaken: list[tuple[Any, ...]] = field(default_factory=list)
    factors: Factors = field(default_factory=Factors)
    tokens: int = 0

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        """Split into kept and refused, each weighed by its share in every case."""
        kept = pointwise(lambda a, b: kept_share(a, b, site), num, den)
        refused = pointwise(lambda share: 1 - share, kept)
        shares: dict[Outcome, Any] = {True: kept, False: refused}
        outcome = self._next([way for way, share in shares.items() if positive(share)])
        self.factors.add(shares[outcome])
        return bool(outcome)

    def choose(self, weights: Any, site: Site) -> Any:
        """A token that is not looked at. The factor is its share of the row in every case."""
        row = as_value(weights)
        support = [x for x in range(len(weights)) if positive(pointwise(lambda r, x=x: r[x], row))]
        token = Token(self, self.tokens, support)
        self.tokens += 1
        self.factors.add(pointwise(lambda r, x: ratio(r[x], sum(r)), row, token))
        return token

    def turn(self, cases: Value) -> Any:
        """Split by what a value is: one run for each of the values that it has where there is mass."""
        possible = self.factors.onto(cases.axes) if len(self.taken) >= len(self.forced) else cases.cells
        outcomes = list(dict.fromkeys(cell for key, cell in cases.cells.items() if key in possible))
        if not outcomes:
            raise Impossible
        outcome = self._next(outcomes)
        self.factors.add(Value(self, cases.axes, {key: 1 for key, cell in cases.cells.items() if cell == outcome}))
        return outcome

    def _next(self, outcomes: list[Any]) -> Any:
        here = len(self.taken)
        if here < len(self.forced):
            outcome = self.forced[here]
        elif outcomes:
            outcome, *others = outcomes
            self.untaken.extend((*self.taken, other) for other in others)
        else:
            raise Impossible
        self.taken.append(outcome)
        return outcome


def kept_share(num: Weight, den: Weight, site: Site) -> Weight:
    """The probability of `accept`: min(1, num / den), and 0 at 0 : 0."""
    check_odds(num, den, site)
    return ratio(num, den) if num < den else int(num > 0)


def positive(share: Any) -> bool:
    """Whether a share is positive in any case."""
    return any(cell > 0 for cell in share.cells.values()) if isinstance(share, Value) else bool(share > 0)


def law(program: Callable[[Chance], Any], runs: list[int] | None = None) -> Law[Any]:
    """The law of `program(chance)`, a tuple (of tuples) of tokens and ints; how many runs it took is put into `runs`.

    Raises ValueError where the program has no answer on a path that has probability.
    """
    out: Law[Any] = {}
    pending: list[tuple[Any, ...]] = [()]
    count = 0
    while pending:
        chance = Merging(forced=pending.pop())
        count += 1
        try:
            result = program(chance)
            axes = tuple(dict.fromkeys(axis for value in values_of(result) for axis in value.axes))
            for key, mass in chance.factors.onto(axes).items():
                at = put_in(result, dict(zip(axes, key, strict=True)))
                out[at] = out.get(at, 0) + mass
        except Impossible:
            pass
        except ValueError:
            if chance.factors.onto(()):  # the path has probability: the program itself refuses it
                raise
        pending.extend(chance.untaken)
    missing = 1 - sum(out.values())
    if abs(missing) > (MASS_SLACK if isinstance(missing, float) else 0):
        raise ValueError(f"the program has no answer where there is probability {float(missing):.3g}")
    if runs is not None:
        runs.append(count)
    return out


# --- rules, drafters and rounds --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rounds:
    """A loop on tables: rows look back `memory` tokens (None: at the whole prefix).

    drafter  the name of a way of drafting in `exact.drafters`, and `shape`, its second argument
    """

    target: Callable[[Tokens], Any]
    draft: Callable[[Tokens], Any]
    drafter: str
    shape: Any
    rule: Rule
    memory: int | None = None

    def one(self, prefix: tuple[Any, ...], chance: Any) -> tuple[Any, ...]:
        """The tokens that a round emits after `prefix`, any of which may be unknown."""
        rule: Rule = opened(sys.modules[self.rule.__module__])[self.rule.__name__]
        made = opened(table_drafters)[self.drafter](table(self.draft, self.memory), self.shape)
        block = made(prefix, chance)
        target: Any = table(self.target, self.memory)
        return rule(target_rows(target, prefix, block), block, chance).tokens

    def seen(self, prefix: Tokens) -> Tokens:
        """What the rows after a prefix depend on."""
        return recent(prefix, self.memory)

    def law(self, prompt: Tokens, rounds: int, length: int, runs: list[int] | None = None) -> Law[Tokens]:
        """The law of the first `length` tokens of `rounds` rounds, fewer where the rounds emit fewer.

        A history that has emitted them is finished; others are one state where they emitted the same tokens.
        """
        done: Law[Tokens] = {}
        now: Law[Tokens] = {(): Fraction(1)}
        known: dict[Hashable, Law[Tokens]] = {}
        for _ in range(rounds):
            following: Law[Tokens] = {}
            for out, mass in now.items():
                context, room = self.seen(prompt + out), length - len(out)
                if (context, room) not in known:
                    known[context, room] = law(lambda chance: self.one(context, chance)[:room], runs)  # noqa: B023
                for tokens, share in known[context, room].items():
                    into = done if len(tokens) == room else following
                    into[out + tokens] = into.get(out + tokens, 0) + mass * share
            now = following
        return done | now

    def completed(self, prompt: Tokens, rounds: int, length: int, runs: list[int] | None = None) -> Law[Tokens]:
        """The law of exactly `length` tokens: what the rounds did not reach is drawn from the target."""
        return completed(self.law(prompt, rounds, length, runs), self.plain, prompt, length)

    def plain(self, prefix: Tokens) -> Any:
        """The target's row, of known tokens."""
        return self.target(self.seen(prefix))


__all__ = ["Key", "Merging", "Rounds", "law"]
