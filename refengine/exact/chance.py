"""Chance: where every random decision comes from.

A program that asks only Chance for randomness can be run in five ways without changing a line of it:

* `Enumerate` takes every branch in turn, so the *exact law* of the program comes out;
* `Sample`    draws uniforms from a seeded generator;
* `Uniforms`  is handed the uniforms by site (conformance vectors, decision boundaries, grids);
* `Replay`    is handed the decisions by site (the witness of a finding);
* `Record`    runs any of these and writes down what was decided where.

Two kinds of decision exist, and both are defined by one uniform u in [0, 1):

* `accept(num, den, site)`   is True iff  u * den < num         (probability min(1, num / den))
* `choose(weights, site)`    is the first i with u * sum(weights) < weights[0] + ... + weights[i]

Both comparisons are strict and division-free. With `<=` a token of probability zero is accepted when u = 0.

A *site* names a decision: `("draft", 2)` draws the draft token at depth 2, `("accept", 2)` judges it and
`("emit", 2)` draws the token that is emitted after two accepted ones (correction or bonus). A third part names the
candidate where one depth judges several: `("accept", 0, 3)`. Within one run a site is used at most once: a coin that
is used twice is a defect, and `Record` and `Uniforms` say so.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

# A weight is an int or a Fraction where laws are exact; float64 where a real network is enumerated.
Weight: TypeAlias = Any
Site: TypeAlias = tuple[str | int, ...]
Outcome: TypeAlias = bool | int

ACCEPT_BITS = 24  # float32 probabilities have 24-bit significands: u * q is then exact in float64
DEPTHS = 1024  # no block is as deep: (start of a round, depth in it) is one number below 2^32 for 4 million tokens
CHOOSE_BITS = 53  # a 24-bit grid cannot reach every token of a 152k vocabulary


class Chance(Protocol):
    """The source of every decision."""

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        """True with probability min(1, num / den); False where num is 0, even when den is 0 too."""
        ...

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        """Index i with probability weights[i] / sum(weights)."""
        ...


@dataclass(frozen=True)
class Decision:
    """One decision as it was taken: where, what, and between which odds."""

    site: Site
    outcome: Outcome
    odds: tuple[Weight, ...]  # (num, den) of an accept, the weights of a choose


def accept_below(u: Weight, num: Weight, den: Weight) -> bool:
    """The definition of accept at uniform u."""
    return bool(u * den < num)


def choose_below(u: Weight, weights: Sequence[Weight]) -> int:
    """The definition of choose at uniform u."""
    bar, cdf = u * sum(weights), 0
    for i, weight in enumerate(weights):
        cdf = cdf + weight
        if bar < cdf:
            return i
    raise ValueError(f"u = {u} is outside [0, 1)")


def check_odds(num: Weight, den: Weight, site: Site) -> None:
    """Refuse negative or NaN odds: a rule that computes them is broken, whatever the coin says."""
    if not (num >= 0 and den >= 0):
        raise ValueError(f"accept at {site}: odds {num} : {den} are negative or NaN")


def check_weights(weights: Sequence[Weight], site: Site) -> None:
    """Refuse weights that are no distribution up to scale."""
    for i, weight in enumerate(weights):
        if not weight >= 0:
            raise ValueError(f"choose at {site}: weight {i} is {weight}, negative or NaN")
    if not sum(weights) > 0:
        raise ValueError(f"choose at {site}: no weight is positive")


def ratio(num: Weight, den: Weight) -> Weight:
    """num / den, exact for ints and Fractions, a float as soon as one of them is a float."""
    return num / den if isinstance(num, float) or isinstance(den, float) else Fraction(num, den)


# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Enumerate:
    """One run through the tree of decisions: follow `forced`, then the first open branch at each new decision.

    `weight` is the probability of this run, `trace` its decisions, `untaken` the forced prefixes of every branch
    that was left aside. A decision with only one possible outcome does not branch.
    """

    forced: tuple[Outcome, ...] = ()
    weight: Weight = Fraction(1)
    trace: list[Decision] = field(default_factory=list)
    untaken: list[tuple[Outcome, ...]] = field(default_factory=list)

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        check_odds(num, den, site)
        shares: dict[Outcome, Weight] = {True: num, False: den - num} if num < den else {num > 0: 1}
        return bool(self._branch(shares, site, (num, den)))

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        check_weights(weights, site)
        return int(self._branch(dict(enumerate(weights)), site, tuple(weights)))

    def _branch(self, shares: Mapping[Outcome, Weight], site: Site, odds: tuple[Weight, ...]) -> Outcome:
        """Take one outcome, which is as likely as its share of the sum."""
        branches = [outcome for outcome, share in shares.items() if share > 0]
        here = len(self.trace)
        if here < len(self.forced):
            taken = self.forced[here]
            if taken not in branches:
                raise RuntimeError(f"the program is not a function of its chance: {site} no longer offers its branch")
        else:
            taken, *others = branches
            past = tuple(decision.outcome for decision in self.trace)
            self.untaken.extend((*past, outcome) for outcome in others)
        if len(branches) > 1:
            self.weight = self.weight * ratio(shares[taken], sum(shares.values()))
        self.trace.append(Decision(site, taken, odds))
        return taken


@dataclass
class Sample:
    """Uniforms from a seeded generator, on the grids of the batched engine (24 and 53 bits)."""

    generator: random.Random

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        check_odds(num, den, site)
        return accept_below(Fraction(self.generator.getrandbits(ACCEPT_BITS), 1 << ACCEPT_BITS), num, den)

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        check_weights(weights, site)
        return choose_below(Fraction(self.generator.getrandbits(CHOOSE_BITS), 1 << CHOOSE_BITS), weights)


@dataclass
class Uniforms:
    """Uniforms handed over by site. A missing site is an error, and so is a second use of one."""

    table: Mapping[Site, Fraction]
    used: set[Site] = field(default_factory=set)

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        check_odds(num, den, site)
        return accept_below(self._take(site), num, den)

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        check_weights(weights, site)
        return choose_below(self._take(site), weights)

    def unused(self) -> list[Site]:
        return [site for site in self.table if site not in self.used]

    def _take(self, site: Site) -> Fraction:
        if site in self.used:
            raise ValueError(f"the uniform of {site} is used twice")
        if site not in self.table:
            raise ValueError(f"no uniform was given for {site}")
        self.used.add(site)
        return self.table[site]


@dataclass
class Replay:
    """Decisions handed over in order. Sites must match, outcomes must be possible, and none may be left over."""

    trace: Sequence[tuple[Site, Outcome]]
    strict: bool = True
    position: int = 0

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        check_odds(num, den, site)
        outcome = bool(self._next(site))
        if (outcome and not num > 0) or (not outcome and not num < den):
            raise ValueError(f"replay at {site}: {outcome} is impossible at odds {num} : {den}")
        return outcome

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        check_weights(weights, site)
        outcome = int(self._next(site))
        if not (0 <= outcome < len(weights) and weights[outcome] > 0):
            raise ValueError(f"replay at {site}: choice {outcome} has no weight")
        return outcome

    def finish(self) -> None:
        """Fail on decisions that the program never asked for (unless not strict)."""
        if self.strict and self.position < len(self.trace):
            raise ValueError(f"replay: {len(self.trace) - self.position} decisions were never asked for")

    def _next(self, site: Site) -> Outcome:
        if self.position >= len(self.trace):
            raise ValueError(f"replay: {site} was never recorded")
        recorded, outcome = self.trace[self.position]
        if self.strict and recorded != site:
            raise ValueError(f"replay: {recorded} was recorded where the program asks for {site}")
        self.position += 1
        return outcome


@dataclass
class Record:
    """Any chance, with its decisions written down. A site that is used twice is refused."""

    inner: Chance
    trace: list[Decision] = field(default_factory=list)
    sites: set[Site] = field(default_factory=set)

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        return bool(self._write(site, self.inner.accept(num, den, site), (num, den)))

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        return int(self._write(site, self.inner.choose(weights, site), tuple(weights)))

    def _write(self, site: Site, outcome: Outcome, odds: tuple[Weight, ...]) -> Outcome:
        if site in self.sites:
            raise ValueError(f"{site} is decided twice: one coin for two uses")
        self.sites.add(site)
        self.trace.append(Decision(site, outcome, odds))
        return outcome


def place(kind: str, depth: Any, start: Any) -> Any:
    """The number under which the coin of `depth`, in the round that starts after `start` tokens, stands in a decode.

    Every position emits once, so an emit coin stands at its absolute position: a decode without speculation draws with
    the same coins. But a position is drafted and judged again after each rejection before it, and by then block
    verification has decided by the old coins (used again, they move the law of two tokens by up to TV 0.06). So the
    place of such a coin is the round's start and the depth, in one number. Ints, or int64 tensors with one per lane.
    """
    return start + depth if kind == "emit" else start * DEPTHS + depth


@dataclass(frozen=True)
class Shifted:
    """The same chance seen from the round that starts after `offset` tokens."""

    inner: Chance
    offset: int

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        return self.inner.accept(num, den, self._absolute(site))

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        return self.inner.choose(weights, self._absolute(site))

    def _absolute(self, site: Site) -> Site:
        kind, depth, *candidate = site
        return (kind, place(str(kind), int(depth), self.offset), *candidate)


def runs(program: Any) -> Iterator[tuple[Any, Weight, list[Decision]]]:
    """Every run of `program(chance)`: (result, probability, decisions), depth first."""
    pending: list[tuple[Outcome, ...]] = [()]
    while pending:
        chance = Enumerate(forced=pending.pop())
        result = program(chance)
        pending.extend(chance.untaken)
        yield result, chance.weight, chance.trace
