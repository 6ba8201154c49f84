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
from functools import cache
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
from refengine.exact.chance import ACCEPT_BITS, Site, Weight, accept_below, check_odds, check_weights, choose_below
from refengine.exact.drafters import fixed, iid_tree, sampled_chain, without_replacement_tree
from refengine.exact.row import Row

Tokens: TypeAlias = tuple[int, ...]
VOCABULARY, BITS = 3, 4  # so small that laws are enumerated in milliseconds and a witness can be checked by hand
# Where a whole law is not enumerated. A sum of neighbours, two by two, has one left over at its first step or at a
# later one (5, 6, 9), or never (1, 2).
VOCABULARIES = st.sampled_from((3, 2, 1, 5, 6, 9))

# --- rows ------------------------------------------------------------------------------------------------------------


@cache
@st.composite
def rows(draw: DrawFn, vocabulary: int = VOCABULARY, bits: int = BITS) -> Row:
    """A distribution over the vocabulary in units of 2^-bits: plain, with zeros or ties, with a heavy head, one-hot."""
    whole, kind = 1 << bits, draw(st.sampled_from(("plain", "plain", "plain", "even", "heavy", "one-hot")))
    if kind == "plain":
        cuts = sorted(draw(st.integers(0, whole)) for _ in range(vocabulary - 1))
    elif kind == "even":
        cuts = [whole * (x + 1) // vocabulary for x in range(vocabulary - 1)]
    elif kind == "heavy":
        cuts = [whole - (whole >> x + 1) for x in range(vocabulary - 1)]
    else:
        cuts = [whole] * (vocabulary - 1)
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, whole], strict=True)]
    order = draw(st.permutations(range(vocabulary))) if kind in ("heavy", "one-hot") else range(vocabulary)
    return tuple(Fraction(parts[x], whole) for x in order)


@cache
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
    """What a rule judges: the target's rows, root first, and the block.

    possible  False where a draft may be one that its row cannot have drawn
    """

    p: tuple[Row, ...]
    block: Block
    possible: bool = True


@cache
@st.composite
def trees(draw: DrawFn, shape: str, nodes: int) -> Tokens:
    """The parents of up to so many nodes: a chain, or any tree, parents before children; often a child or a sibling of
    the node before, so that what a refusal leaves behind meets the next depth."""
    parents: Tokens = ()
    for node in range(draw(_up_to(nodes))):
        parents += (node - 1 if shape == "chain" else draw(_parent(node, parents[-1:])),)
    return parents


@cache  # a strategy that is made anew for each draw is validated anew
def _up_to(nodes: int) -> SearchStrategy[int]:
    return st.integers(0, nodes) | st.just(nodes)


@cache
def _parent(node: int, last: Tokens) -> SearchStrategy[int]:
    return st.sampled_from((node - 1, *last)) | st.integers(ROOT, node - 1)


@cache
@st.composite
def judged(
    draw: DrawFn,
    shape: str,
    drawn: str | None,
    vocabulary: int = VOCABULARY,
    bits: int = BITS,
    nodes: int = 4,
    possible: bool = True,
) -> Case:
    """A block as a card's `shape` and `drawn` name it, with the rows that judge it. Siblings share one q.

    A node whose row supports no token that it may have is left out, with everything behind it; where a block need not
    be `possible`, any token may stand anywhere.
    """
    wanted = draw(trees(shape, nodes))
    by_place = [draw(pairs(vocabulary, bits)) for _ in range(len(wanted) + 1)]  # what follows the root, then each node
    place, tokens, parents = {ROOT: ROOT}, list[int](), list[int]()
    free = drawn is None or not possible
    for node, parent in enumerate(wanted):
        if parent not in place:
            continue
        row = by_place[parent + 1][1]
        taken = {x for x, up in zip(tokens, parents, strict=True) if up == place[parent] and drawn == "distinct"}
        support = [x for x in range(vocabulary) if free or (row[x] > 0 and x not in taken)]
        if support:
            place[node] = len(tokens)
            tokens.append(draw(st.sampled_from(support)))
            parents.append(place[parent])
    inner = {new: old for old, new in place.items()}
    q: tuple[Row | None, ...] = tuple(by_place[inner[parent] + 1][1] if drawn else None for parent in parents)
    p = tuple(by_place[inner[node] + 1][0] for node in range(ROOT, len(tokens)))
    return Case(p, Block(tuple(tokens), tuple(parents), q, (None,) * len(tokens)), not free or drawn is None)


@st.composite
def lanes(draw: DrawFn, cases: SearchStrategy[Case], most: int = 4) -> list[Case]:
    """A ragged batch: cases of different sizes side by side, as often many as few."""
    return [draw(cases) for _ in range(draw(st.integers(1, most)))]


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


FIRST = "repetition_penalty"  # of which only the first can be exact, and that on squares
FILTERS = "temperature", "top_k", "top_p", "min_p", "greedy"
# Added to every share and factor: products of small integers with it are never equal, so no tie hangs on rounding.
OFF = Fraction(1, 10_007)
_Step: TypeAlias = tuple[str, exact.Policy, engine.Step, tuple[Tokens, ...]]


@dataclass(frozen=True)
class Policy:
    """A policy in both texts, and how it is written.

    words  the sequences of tokens that it looks for
    """

    text: str
    exact: Callable[[exact.Weights, Tokens, Tokens], Row]
    engine: engine.Policy
    words: tuple[Tokens, ...]

    def __repr__(self) -> str:
        return self.text


def policies(vocabulary: int = VOCABULARY, most: int = 3, only: str = "") -> SearchStrategy[Policy]:
    """Pipelines of up to so many steps, in any order but for a repetition penalty, which comes first; or of one step,
    where one is named. They may ban every token: both texts then raise ValueError."""
    known = _steps(vocabulary, st.integers(1, 16).map(lambda n: Fraction(n, 16) + (OFF if n < 16 else 0)))
    if only:
        return st.tuples(known[only]).map(_pipeline)
    rest = st.lists(st.one_of(*(step for name, step in known.items() if name != FIRST)), max_size=most)
    return rest.map(_pipeline) | st.tuples(known[FIRST], rest).map(lambda both: _pipeline([both[0], *both[1]]))


def filters_at_their_edges(vocabulary: int = VOCABULARY, most: int = 2) -> SearchStrategy[Policy]:
    """Pipelines of filters whose shares are reached exactly, in floats too, by `even_weights`."""
    known = _steps(vocabulary, st.integers(1, 16).map(lambda n: Fraction(n, 16)))
    return st.lists(st.one_of(*(known[name] for name in FILTERS)), min_size=1, max_size=most).map(_pipeline)


def weights(vocabulary: int = VOCABULARY) -> SearchStrategy[list[Fraction]]:
    """What policies are given, not all zero: squares, which a repetition penalty can take the root of."""
    squares = st.sampled_from([Fraction(0), *(Fraction(n * n) for n in (1, 2, 3, 5)), Fraction(1, 4), Fraction(1, 9)])
    return st.lists(squares, min_size=vocabulary, max_size=vocabulary).filter(any)


@st.composite
def even_weights(draw: DrawFn, vocabulary: int = VOCABULARY) -> list[Fraction]:
    """1, 2, 4 ... tokens of equal weight, none of the others: the share of each is a power of two, in floats too."""
    kept = draw(st.permutations(range(vocabulary)))[: 1 << draw(st.integers(0, vocabulary.bit_length() - 1))]
    return [Fraction(int(x in kept)) for x in range(vocabulary)]


@st.composite
def histories(
    draw: DrawFn, vocabulary: int = VOCABULARY, most: int = 4, words: Sequence[Tokens] = ()
) -> tuple[Tokens, Tokens]:
    """A prompt, and what was emitted after it: tokens, often with one of `words` behind them whose last is missing; cut
    anywhere, in that word too."""
    text = tuple(draw(st.lists(st.integers(0, vocabulary - 1), max_size=most)))
    text += draw(st.sampled_from([*(word[:-1] for word in words), ()]))
    cut = len(text) - min(len(text), draw(st.integers(0, 2) | st.integers(0, most + 2)))
    return text[:cut], text[cut:]


def asked(policies: SearchStrategy[Policy], vocabulary: int = VOCABULARY) -> SearchStrategy[tuple[Policy, Any]]:
    """A policy, and a history that has to do with it."""
    return policies.flatmap(lambda one: st.tuples(st.just(one), histories(vocabulary, words=one.words)))


def _pipeline(steps: Sequence[_Step]) -> Policy:
    return Policy(
        f"pipeline({', '.join(text for text, _, _, _ in steps)})",
        exact.pipeline(*(one for _, one, _, _ in steps)),
        engine.pipeline(*(other for _, _, other, _ in steps)),
        tuple(word for *_, words in steps for word in words),
    )


def _steps(vocabulary: int, share: SearchStrategy[Fraction]) -> dict[str, SearchStrategy[_Step]]:
    token = st.integers(0, vocabulary - 1)
    word = st.integers(1, 3).flatmap(lambda length: st.tuples(*[token] * length))
    words = st.lists(word, min_size=1, max_size=2)
    factors = st.dictionaries(token, st.sampled_from((Fraction(0), Fraction(1, 2) + OFF, 4 + OFF)), max_size=2)
    moves = st.dictionaries(st.integers(0, 1), st.dictionaries(token, st.integers(0, 1)), min_size=2, max_size=2)
    same: Callable[[Any], Any] = lambda x: x  # noqa: E731
    given: dict[str, tuple[SearchStrategy[Any], Callable[[Any], Any]]] = {  # and what the engine's text takes for it
        "temperature": (st.integers(1, 3), lambda n: 1 / n),
        "top_k": (st.integers(1, vocabulary + 1), same),
        "top_p": (share, float),
        "min_p": (share, float),
        "presence_penalty": (share, lambda factor: -math.log(factor)),
        "frequency_penalty": (share, lambda factor: -math.log(factor)),
        "logit_bias": (factors, lambda given: {x: math.log(f) if f else engine.BANNED for x, f in given.items()}),
        "bad_words": (words, same),
        "grammar": (st.tuples(moves, st.integers(0, 1)), same),
        FIRST: (st.just(2), float),
    }

    def step(name: str) -> SearchStrategy[_Step]:
        values, other = given[name]
        made, batched = getattr(exact, name), getattr(engine, name)
        looked_for = tuple if name == "bad_words" else lambda _: ()
        if name == "grammar":  # of two arguments
            return values.map(lambda x: (f"{name}({x[0]}, {x[1]})", made(*x), batched(*x), ()))
        return values.map(lambda x: (f"{name}({x})", made(x), batched(other(x)), looked_for(x)))

    greedy: _Step = ("greedy()", exact.greedy(), engine.greedy(), ())
    return {name: step(name) for name in given} | {"greedy": st.just(greedy)}


STEPS = tuple(_steps(VOCABULARY, st.nothing()))  # by name


# --- uniforms at the edges of decisions ------------------------------------------------------------------------------


@dataclass
class AtTheEdge:
    """A Chance whose uniforms Hypothesis draws, given `data.draw` of `st.data()`: beside the edges of each decision,
    one step of the 24-bit grid below, on and above where the outcome changes, or in the middle of a piece.

    table   the uniform of each site that was decided
    odds    the probability of what was decided there: of True, or of each choice
    """

    draw: Callable[..., Any]
    table: dict[Site, Fraction] = field(default_factory=dict)
    odds: dict[Site, tuple[Fraction, ...]] = field(default_factory=dict)

    def accept(self, num: Weight, den: Weight, site: Site) -> bool:
        check_odds(num, den, site)
        self.odds[site] = (probability(num, den),)
        return accept_below(self._beside(self.odds[site], site), num, den)

    def choose(self, weights: Sequence[Weight], site: Site) -> int:
        check_weights(weights, site)
        self.odds[site] = shares(weights)
        return choose_below(self._beside(list(accumulate(self.odds[site])), site), weights)

    def _beside(self, edges: Sequence[Fraction], site: Site) -> Fraction:
        grid, cuts = 1 << ACCEPT_BITS, sorted({Fraction(0), *edges, Fraction(1)})
        near = [math.floor(cut * grid) + step for cut in cuts for step in (0, -1, 1)]
        middle = [math.floor((a + b) / 2 * grid) for a, b in pairwise(cuts)]
        places = sorted({place for place in (*near, *middle) if 0 <= place < grid})
        self.table[site] = Fraction(self.draw(st.sampled_from(places), label=f"u of {site}, in units of 2^-24"), grid)
        return self.table[site]


def probability(num: Weight, den: Weight) -> Fraction:
    """Of True in an accept, exactly."""
    return Fraction(num) / Fraction(den) if num < den else Fraction(int(num > 0))


def shares(weights: Sequence[Weight]) -> tuple[Fraction, ...]:
    """The probability of each choice, exactly."""
    exact = [Fraction(weight) for weight in weights]
    return tuple(weight / sum(exact) for weight in exact)
