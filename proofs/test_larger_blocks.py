"""The batched text and the exact text on blocks, lanes and vocabularies larger than z3 is asked about, run by run.

The equality on terms is of few drafts, lanes and tokens, and a reader refuses what could tell larger ones apart, as far
as it knows the words (`engine_texts/counting.py`). Here nothing is known of the words: a number that only begins to
matter behind the sixth draft, the fourth lane or the ninth sibling makes another round.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from refengine.bugs.checks.batches import EVERY, Case, Pair, batch, made, unpadded
from refengine.engine.block import Block
from refengine.engine.check import check_rows
from refengine.engine.coins import Philox, Recorded, choose_below
from refengine.engine.policy import top_k
from refengine.engine.rules.block import prefix_weights
from refengine.exact import block as definition
from refengine.exact import chance
from refengine.exact.chance import ACCEPT_BITS, CHOOSE_BITS, Site, Uniforms

pytestmark = pytest.mark.long

CHAINS = (5, 9, 24)  # nodes
TREES = (9, 24)
BLOCKS, BITS = 24, 6  # of each size; rows are integers / 2^BITS
VOCABULARIES = (12, 2)  # of two tokens, drafts repeat themselves
LONGEST, MOST_LANES, DIFFERENT = 200, 5_000, 7  # nodes of a chain; lanes, of which so many differ
NEAR_ZERO = (1, 1, 8, 64, 512)  # uniforms are divided by one of these: drafts are accepted, and the round goes far


@cache
def uniforms(site: Site, lanes: int) -> list[Fraction]:
    """One of its own for each site and lane."""
    numbers = random.Random(f"{site}")
    bits = ACCEPT_BITS if site[0] == "accept" else CHOOSE_BITS
    return [Fraction(numbers.getrandbits(bits) // numbers.choice(NEAR_ZERO), 1 << bits) for _ in range(lanes)]


class Everywhere(dict[Any, Any]):
    """The uniforms of every site: of one lane a Fraction, of all a float64 tensor [B]."""

    def __init__(self, lanes: int, lane: int | None = None) -> None:
        self.lanes, self.lane = lanes, lane

    def __contains__(self, site: object) -> bool:
        return True

    def __missing__(self, site: Site) -> Any:
        found = uniforms(site, self.lanes)
        return torch.tensor([float(u) for u in found]).double() if self.lane is None else found[self.lane]


class Repeated(Everywhere):
    """Every lane has the uniforms of the one that is DIFFERENT before it."""

    def __missing__(self, site: Site) -> Any:
        found = [float(u) for u in uniforms(site, DIFFERENT)]
        return torch.tensor([found[lane % DIFFERENT] for lane in range(self.lanes)]).double()


class Edges(Everywhere):
    """Uniforms that take the first token or the last one that is left."""

    def __missing__(self, site: Site) -> Any:
        return torch.tensor([0.0, 1 - 2.0**-53, 0.0, 1 - 2.0**-24]).double()


def larger(pair: Pair, vocabulary: int) -> list[Case]:
    """Chains and trees of all sizes, some of whose nodes have many siblings."""
    numbers = random.Random(pair.name)
    chains = [tuple(range(-1, size - 1)) for size in CHAINS]
    trees = [_tree(numbers, size, wide) for size in TREES for wide in (False, True)]
    shapes: Sequence[tuple[int, ...]] = chains if pair.shape == "chain" else [*chains, *trees]
    cases = [made(pair, parents, numbers, BITS, vocabulary) for parents in shapes for _ in range(BLOCKS)]
    return cases if pair.drawn else [_likely(case) if number % 2 else case for number, case in enumerate(cases)]


def _likely(case: Case) -> Case:
    """The same block where the target wants the first child of each node, but for the last in four."""
    p = [*case.p]
    for node, (token, parent) in reversed([*enumerate(zip(case.block.tokens, case.block.parents, strict=True))]):
        if node % 4 < 3:
            size, others = len(p[0]), Fraction(1, 1 << BITS)
            p[parent + 1] = tuple(1 - (size - 1) * others if x == token else others for x in range(size))
    return Case(tuple(p), case.block)


def sure(case: Case, nodes: int) -> Case:
    """The same chain, of which the target wants nothing else in so many places."""
    wanted = [tuple(Fraction(x == token) for x in range(len(case.p[0]))) for token in case.block.tokens[:nodes]]
    return Case((*wanted, *case.p[nodes:]), case.block)


def _tree(numbers: random.Random, size: int, wide: bool) -> tuple[int, ...]:
    """Each node below an earlier one: a wide tree has most of them below the root or its first child."""
    return tuple(numbers.randrange(-1, min(node, 1) if wide else node) for node in range(size))


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("pair", EVERY, ids=lambda pair: pair.name)
def test_larger_blocks_have_one_round_in_both_texts(pair: Pair, vocabulary: int) -> None:
    """Kills: a rule that is another from some draft, lane, sibling or token on, or where a lane has no place left."""
    cases = larger(pair, vocabulary)
    expected = [pair.define(case, Uniforms(Everywhere(len(cases), lane))) for lane, case in enumerate(cases)]
    for spare in (0, 1):
        p, block = batch(cases, spare)
        got = unpadded(pair.batched(p.double(), block, Recorded(Everywhere(len(cases))), **pair.floats()))
        assert got == expected
    reached = max(len(path) for _, path in expected)
    assert reached >= 5, "no round goes far"


@pytest.mark.parametrize("pair", EVERY, ids=lambda pair: pair.name)
def test_long_chains_and_many_lanes_have_one_round_in_both_texts(pair: Pair) -> None:
    """Kills: a depth, or the number of a lane, that is cut: no engine drafts so many, or runs as many at once; drafts
    that say one token so often that they are refused."""
    numbers = random.Random(pair.name)
    chain, wide = tuple(range(-1, LONGEST - 1)), VOCABULARIES[0]
    for parents, lanes, vocabulary in ((chain, DIFFERENT, wide), (chain, DIFFERENT, 1), ((-1,), MOST_LANES, wide)):
        cases = [
            sure(made(pair, parents, numbers, BITS, vocabulary), at * len(parents) // 6) for at in range(DIFFERENT)
        ]
        expected = [pair.define(case, Uniforms(Everywhere(DIFFERENT, lane))) for lane, case in enumerate(cases)]
        p, block = batch([cases[lane % DIFFERENT] for lane in range(lanes)])
        got = unpadded(pair.batched(p.double(), block, Recorded(Repeated(lanes)), **pair.floats()))
        assert got == [expected[lane % DIFFERENT] for lane in range(lanes)]
        assert len(expected[-1][1]) == len(parents)


@pytest.mark.parametrize("pair", EVERY, ids=lambda pair: pair.name)
def test_rows_are_judged_in_float64_whatever_they_are_stored_in(pair: Pair) -> None:
    """Kills: a sum in the precision of the row: of V equal tokens another one crosses a threshold that is a share."""
    for size in range(5, 300, 5):
        rows = torch.full((4, 3, size), 1 / size)
        block = Block(torch.tensor([[0, 1]] * 4), torch.tensor([[-1, 0]] * 4), rows[:, 1:] if pair.drawn else None)
        wide = replace(block, q=block.q.double() if block.q is not None else None)
        coins = Edges(4)
        one, *others = (
            pair.batched(p, there, Recorded(coins), **pair.floats())
            for p, there in product((rows, rows.double()), (block, wide) if pair.drawn else (block,))
        )
        assert all(torch.equal(one.tokens, other.tokens) for other in others), size
        assert all(torch.equal(one.length, other.length) for other in others), size


@pytest.mark.parametrize("share", [2.0**-10, 2.0**-30])
def test_prefix_weights_of_long_chains(share: float) -> None:
    """Kills: a running product of draft probabilities that underflows although what is kept of it is scaled."""
    n = 140
    q, p = (torch.tensor([part, 1 - part]).double() for part in (share, share / 2))
    block = Block(torch.zeros(1, n, dtype=torch.int64), torch.arange(-1, n - 1)[None], q.expand(1, n, 2))
    num, den = prefix_weights(p.expand(1, n + 1, 2), block)
    weights: Tensor = (num / den)[0]
    assert weights.tolist() == [2.0**-i for i in range(n + 1)]


@pytest.mark.parametrize("pair", [pair for pair in EVERY if pair.drawn == "distinct"], ids=lambda pair: pair.name)
def test_what_many_siblings_leave_has_mass(pair: Pair) -> None:
    """Kills: a working row that is not scaled, whose mass is 0 in floats behind some siblings and not among numbers."""
    n, share = 40, Fraction(1, 1 << 20)
    row = (*(share**x * (1 - share) for x in range(n)), share**n)  # each is a millionth of the one before
    wanted = tuple(Fraction(x == n) for x in range(n + 1))
    siblings = definition.Block(tuple(range(n)), (-1,) * n, (row,) * n, (None,) * n)
    expected = pair.define(Case((wanted,) * (n + 1), siblings), Uniforms(Everywhere(1, 0)))
    p, q = (torch.tensor([float(x) for x in weights], dtype=torch.float64) for weights in (wanted, row))
    block = Block(torch.arange(n)[None], torch.full((1, n), -1), q.expand(1, n, n + 1))
    assert unpadded(pair.batched(p.expand(1, n + 1, n + 1), block, Recorded(Everywhere(1)))) == [expected]


@pytest.mark.parametrize("k", [3, 33_000, 70_000])
def test_a_level_of_many_equal_logits(k: int) -> None:
    """Kills: equal logits that are counted in a number too small for a real vocabulary."""
    kept = top_k(k)(torch.zeros(1, 70_000), (), ()) > -1
    assert torch.equal(kept[0], torch.arange(70_000) < k)


def test_the_heaviest_of_a_wide_row() -> None:
    """Kills: a choice of tokens that looks at the first thousands alone, or sorts no more."""
    order = torch.randperm(70_000, generator=torch.Generator().manual_seed(1))
    row = torch.zeros(1, 70_000).index_put((torch.tensor([0]), order), -torch.arange(70_000.0))
    for k in (1, 5_000, 69_999):
        kept = top_k(k)(row, (), ()) > torch.finfo(torch.float32).min
        assert set(kept[0].nonzero()[:, 0].tolist()) == set(order[:k].tolist())


@pytest.mark.parametrize("at", [0, 1, 4096, 65_535, 65_536, 151_935, 262_143, 262_144, 1_048_576, 1_100_000])
def test_a_token_is_found_wherever_it_is_in_a_wide_row(at: int) -> None:
    """Kills: a descent of so many levels, one in single precision, and one that takes a token without mass."""
    row = torch.zeros(3, 151_936 if at < 151_936 else 1_100_001, dtype=torch.float64)
    row[:, at] = 0.25
    uniforms = torch.tensor([0.0, 0.5, 1 - 2.0**-53], dtype=torch.float64)
    assert choose_below(uniforms, row).tolist() == [at] * 3


@pytest.mark.parametrize("size", [40, 1_000, 32_000, 151_936])
def test_a_pick_of_a_wide_row_is_that_of_the_exact_text(size: int) -> None:
    """Kills: a descent that is right on its first levels, and then forgets what stands on the left, or which side."""
    numbers = random.Random(size)
    weights = [
        numbers.randrange(64) for _ in range(size)
    ]  # nothing is rounded: sums are below 2^24, uniforms have 20 bits
    uniforms = [Fraction(numbers.getrandbits(20), 1 << 20) for _ in range(24)]
    wanted = [chance.choose_below(u, weights) for u in uniforms]
    rows = torch.tensor([weights] * len(uniforms), dtype=torch.float64)
    assert choose_below(torch.tensor([float(u) for u in uniforms]).double(), rows).tolist() == wanted


@pytest.mark.parametrize("size", [32_000, 300_000])
def test_a_wide_row_that_sums_to_more_is_refused(size: int) -> None:
    """Kills: rows that nobody looks at from some number of tokens on."""
    p, block = (
        torch.full((2, 2, size), 1 / size),
        Block(torch.zeros(2, 1, dtype=torch.int64), torch.full((2, 1), -1), None),
    )
    check_rows(p, block)
    p[1, 1, -1] += 0.5
    with pytest.raises(ValueError, match="does not sum to 1"):
        check_rows(p, block)


def test_every_bit_of_a_place_and_of_a_candidate_counts() -> None:
    """Kills: a counter that is cut, so that two places far apart share a coin."""
    coins, row = Philox(7, torch.tensor([3])), torch.ones(1, 1 << 16)
    places: list[Site] = [("emit", 0), *(("emit", 1 << bit) for bit in range(31))]
    candidates: list[Site] = [("emit", 5), *(("emit", 5, 1 << bit) for bit in range(30))]
    for sites in (places, candidates):
        drawn = [int(coins.choose(row, site)) for site in sites]
        assert len(set(drawn)) == len(sites)
