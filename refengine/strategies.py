"""Hypothesis strategies for what a rule, a loop or a policy can be given; each of them shrinks to the plainest case.

    from hypothesis import given
    from refengine import strategies

    @given(strategies.judged("tree", "iid"))
    def test_my_rule(case: strategies.Case) -> None:
        ...                                        # case.p, case.block: the rows and the block of one verification

    @given(strategies.worlds("chain", "iid"))
    def test_my_loop(world: strategies.World) -> None:
        ...                                        # world.target, world.draft(prefix, chance): whole decodes, exactly

Rows are exact rationals. Tokens without mass, ties, rows that differ in one part of 2^bits, rows without overlap and
heavy heads are drawn as often as plain ones, because that is where rules go wrong. `bits` makes every probability an
integer / 2^bits, so that float arithmetic of an engine is exact and the comparison with `refengine.exact` an equality.

Hypothesis is not a dependency of the package: `pip install refengine[tests]`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ImportError as error:
    raise ImportError("refengine.strategies needs Hypothesis: pip install refengine[tests]") from error

from refengine.engine import policy as engine
from refengine.exact import policy as exact
from refengine.exact.block import ROOT, Block, Drafter
from refengine.exact.chance import ACCEPT_BITS, Site, Weight, accept_below, check_odds, choose_below
from refengine.exact.drafters import fixed, iid_tree, sampled_chain, without_replacement_tree
from refengine.exact.row import Row

Tokens: TypeAlias = tuple[int, ...]
VOCABULARY, BITS = 3, 4  # so small that laws are enumerated in milliseconds and a witness can be checked by hand

# --- rows ------------------------------------------------------------------------------------------------------------


@st.composite
def rows(draw: DrawFn, vocabulary: int = VOCABULARY, bits: int = BITS) -> Row:
    """A distribution over the vocabulary in units of 2^-bits: plain, with zeros or ties, with a heavy head, one-hot."""
    whole, kind = 1 << bits, draw(st.sampled_from(("plain", "plain", "plain", "even", "heavy", "one-hot")))
    if kind == "plain":
        cuts = sorted(draw(st.lists(st.integers(0, whole), min_size=vocabulary - 1, max_size=vocabulary - 1)))
    elif kind == "even":
        cuts = [whole * (x + 1) // vocabulary for x in range(vocabulary - 1)]
    elif kind == "heavy":
        cuts = [whole - (whole >> x + 1) for x in range(vocabulary - 1)]
    else:
        cuts = [whole] * (vocabulary - 1)
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, whole], strict=True)]
    order = draw(st.permutations(range(vocabulary))) if kind in ("heavy", "one-hot") else range(vocabulary)
    return tuple(Fraction(parts[x], whole) for x in order)


@st.composite
def pairs(draw: DrawFn, vocabulary: int = VOCABULARY, bits: int = BITS) -> tuple[Row, Row]:
    """The rows (p, q) of one position: independent, equal, one unit apart, of disjoint support, in reverse order."""
    p = draw(rows(vocabulary, bits))
    kind = draw(st.sampled_from(("independent", "independent", "equal", "near", "disjoint", "reversed")))
    if kind == "independent":
        return p, draw(rows(vocabulary, bits))
    if kind == "reversed":
        return p, p[::-1]
    free = [x for x, px in enumerate(p) if px == 0]
    if kind == "disjoint" and free:
        shares = iter(draw(rows(len(free), bits)))
        return p, tuple(next(shares) if px == 0 else Fraction(0) for px in p)
    if kind == "near":
        giver, taker = draw(st.permutations(range(vocabulary)))[:2] if vocabulary > 1 else (0, 0)
        unit = Fraction(int(p[giver] > 0), 1 << bits)
        return p, tuple(px + unit * ((x == taker) - (x == giver)) for x, px in enumerate(p))
    return p, p


# --- one verification ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What a rule judges: the target's rows, root first, and the block."""

    p: tuple[Row, ...]
    block: Block


@st.composite
def trees(draw: DrawFn, shape: str, nodes: int) -> Tokens:
    """The parents of up to so many nodes: a chain, or any tree, parents before children."""
    count = draw(st.integers(0, nodes))
    return tuple(node - 1 if shape == "chain" else draw(st.integers(ROOT, node - 1)) for node in range(count))


@st.composite
def judged(
    draw: DrawFn, shape: str, drawn: str | None, vocabulary: int = VOCABULARY, bits: int = BITS, nodes: int = 4
) -> Case:
    """A block as a card's `shape` and `drawn` name it, with the rows that judge it. Siblings share one q.

    A node whose row supports no token that it may have is left out, with everything behind it.
    """
    wanted = draw(trees(shape, nodes))
    by_place = [draw(pairs(vocabulary, bits)) for _ in range(len(wanted) + 1)]  # what follows the root, then each node
    place, tokens, parents = {ROOT: ROOT}, list[int](), list[int]()
    for node, parent in enumerate(wanted):
        if parent not in place:
            continue
        row = by_place[parent + 1][1]
        taken = {x for x, up in zip(tokens, parents, strict=True) if up == place[parent] and drawn == "distinct"}
        support = [x for x in range(vocabulary) if drawn is None or (row[x] > 0 and x not in taken)]
        if support:
            place[node] = len(tokens)
            tokens.append(draw(st.sampled_from(support)))
            parents.append(place[parent])
    inner = {new: old for old, new in place.items()}
    q: tuple[Row | None, ...] = tuple(by_place[inner[parent] + 1][1] if drawn else None for parent in parents)
    p = tuple(by_place[inner[node] + 1][0] for node in range(ROOT, len(tokens)))
    return Case(p, Block(tuple(tokens), tuple(parents), q, (None,) * len(tokens)))


def lanes(cases: SearchStrategy[Case], most: int = 4) -> SearchStrategy[list[Case]]:
    """A ragged batch: cases of different sizes side by side."""
    return st.lists(cases, min_size=1, max_size=most)


# --- whole decodes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A target and a drafter as tables: which pair of rows follows a prefix depends on each token and its place.

    where   how many candidates are drawn after every node, by depth
    given   tokens and parents of candidates that nobody draws, where `drawn` is None
    """

    table: tuple[tuple[Row, Row], ...]
    where: tuple[int, ...]
    drawn: str | None
    given: tuple[Tokens, Tokens] = ((), ())

    def _pair(self, prefix: Tokens) -> tuple[Row, Row]:
        return self.table[sum((x + 1) * (place + 1) for place, x in enumerate(prefix)) % len(self.table)]

    def target(self, prefix: Tokens) -> Row:
        return self._pair(prefix)[0]

    def draft_row(self, prefix: Tokens) -> Row:
        return self._pair(prefix)[1]

    @property
    def draft(self) -> Drafter:
        """Proposes after a prefix; all of its randomness comes from the chance that it is given."""
        if self.drawn is None:
            return fixed(lambda prefix: self.given)
        if self.drawn == "distinct":
            return without_replacement_tree(self.draft_row, self.where)
        return (
            sampled_chain(self.draft_row, len(self.where))
            if set(self.where) <= {1}
            else iid_tree(self.draft_row, self.where)
        )


@st.composite
def worlds(draw: DrawFn, shape: str, drawn: str | None, vocabulary: int = VOCABULARY, bits: int = BITS) -> World:
    """A table target and a table drafter of the kind that a card's `shape` and `drawn` name, two deep at most."""
    table = tuple(draw(st.lists(pairs(vocabulary, bits), min_size=1, max_size=3)))
    if drawn is None:
        parents = draw(trees(shape, 4))
        tokens = tuple(draw(st.integers(0, vocabulary - 1)) for _ in parents)
        return World(table, (), None, (tokens, parents))
    # At most four draws in a round, each of which multiplies the runs that an enumeration has to make.
    widths = ((), (1,), (1, 1)) if shape == "chain" else ((), (1,), (2,), (1, 1), (1, 2), (2, 1), (3,))
    return World(table, draw(st.sampled_from(widths)), drawn)


# --- histories and policies ------------------------------------------------------------------------------------------


def histories(vocabulary: int = VOCABULARY, most: int = 3) -> SearchStrategy[tuple[Tokens, Tokens]]:
    """A prompt, and what was emitted after it."""
    tokens = st.lists(st.integers(0, vocabulary - 1), max_size=most).map(tuple)
    return st.tuples(tokens, tokens)


@dataclass(frozen=True)
class Policy:
    """A policy in both texts, and how it is written."""

    text: str
    exact: Callable[[exact.Weights, Tokens, Tokens], Row]
    engine: engine.Policy

    def __repr__(self) -> str:
        return self.text


def policies(vocabulary: int = VOCABULARY, most: int = 3) -> SearchStrategy[Policy]:
    """Pipelines of up to so many steps, in any order. They may ban every token: both texts then raise ValueError."""
    return st.lists(_steps(vocabulary), max_size=most).map(
        lambda steps: Policy(
            f"pipeline({', '.join(text for text, _, _ in steps)})",
            exact.pipeline(*(one for _, one, _ in steps)),
            engine.pipeline(*(other for _, _, other in steps)),
        )
    )


# Added to every share and factor: products of small integers with it are never equal, so no tie hangs on rounding.
OFF = Fraction(1, 10_007)
_Step: TypeAlias = tuple[str, exact.Policy, engine.Step]


def _steps(vocabulary: int) -> SearchStrategy[_Step]:
    token, share = st.integers(0, vocabulary - 1), st.integers(1, 15).map(lambda n: Fraction(n, 16) + OFF)
    words = st.lists(st.lists(token, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2)
    factors = st.dictionaries(token, st.sampled_from((Fraction(0), Fraction(1, 2) + OFF, 4 + OFF)), max_size=2)
    moves = st.dictionaries(st.integers(0, 1), st.dictionaries(token, st.integers(0, 1)), min_size=2, max_size=2)

    def step(
        name: str, values: SearchStrategy[Any], other: Callable[[Any], Any] = lambda x: x
    ) -> SearchStrategy[_Step]:
        """The step of that name in both texts, at one value; `other` is what the engine's takes for it."""
        return values.map(lambda x: (f"{name}({x})", getattr(exact, name)(x), getattr(engine, name)(other(x))))

    return st.one_of(
        step("temperature", st.integers(1, 3), lambda n: 1 / n),
        step("top_k", st.integers(1, vocabulary + 1)),
        step("top_p", share, float),
        step("min_p", share, float),
        step("presence_penalty", share, lambda factor: -math.log(factor)),
        step("frequency_penalty", share, lambda factor: -math.log(factor)),
        step("logit_bias", factors, lambda given: {x: math.log(f) if f else engine.BANNED for x, f in given.items()}),
        step("bad_words", words),
        step("grammar", moves),
        st.just(("greedy()", exact.greedy(), engine.greedy())),
    )


# --- uniforms at the edges of decisions ------------------------------------------------------------------------------


@dataclass
class AtTheEdge:
    """A Chance whose uniforms Hypothesis draws, given `data.draw` of `st.data()`: beside the edges of each decision,
    one step of the 24-bit grid below, on and above where the outcome changes, or in the middle of a piece.

    table   the uniform of each site that was decided
    """

    draw: Callable[..., Any]
    table: dict[Site, Fraction] = field(default_factory=dict)

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        check_odds(num, den, site)
        return accept_below(self._beside([Fraction(num) / Fraction(den) if den else Fraction(0)], site), num, den)

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        return choose_below(self._beside([Fraction(c) / sum(weights) for c in accumulate(weights)], site), weights)

    def _beside(self, edges: Sequence[Fraction], site: Site) -> Fraction:
        grid, cuts = 1 << ACCEPT_BITS, sorted({Fraction(0), *(min(edge, Fraction(1)) for edge in edges), Fraction(1)})
        near = [math.floor(cut * grid) + step for cut in cuts for step in (0, -1, 1)]
        middle = [math.floor((a + b) / 2 * grid) for a, b in pairwise(cuts)]
        places = sorted({place for place in (*near, *middle) if 0 <= place < grid})
        self.table[site] = Fraction(self.draw(st.sampled_from(places), label=f"u of {site}, in units of 2^-24"), grid)
        return self.table[site]
