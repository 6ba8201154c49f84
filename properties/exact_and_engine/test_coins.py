"""Coins: the definition of a decision at a uniform, and the strictness of what hands uniforms over."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from refengine.engine.block import Block
from refengine.engine.coins import (
    KINDS,
    MASK,
    SCHEME,
    Branching,
    Philox,
    Recorded,
    Shifted,
    accept_below,
    choose_below,
    philox4x32,
)
from refengine.engine.kernels import compiled
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.chance import DEPTHS, Enumerate, Record, runs
from refengine.exact.chance import choose_below as exact_choose

Counter = tuple[int, int, int, int]

# Random123's kat_vectors, philox 4x32 with 10 rounds: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 4, (MASK,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")],
    ),
]


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def scalar_philox(counter: Counter, key: tuple[int, int]) -> Counter:
    """The same generator on Python's integers, which do not wrap."""
    c0, c1, c2, c3 = counter
    for r in range(10):
        k0, k1 = (key[0] + r * 0x9E3779B9) % 2**32, (key[1] + r * 0xBB67AE85) % 2**32
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = b // 2**32 ^ c1 ^ k0, b % 2**32, a // 2**32 ^ c3 ^ k1, a % 2**32
    return c0, c1, c2, c3


@pytest.mark.parametrize("device", DEVICES)
def test_philox_known_answers(device: str) -> None:
    """Kills any slip in rounds, constants, word order or masking."""
    for counter, key, expected in KNOWN:
        words = tuple(torch.tensor([c], device=device) for c in counter)
        assert tuple(int(w) for w in philox4x32(words, key)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("device", DEVICES)
def test_philox_decides_by_the_top_bits_of_its_own_counter(device: str) -> None:
    """Kills a wrong counter layout, a wrong shift, a non-strict comparison and a lane that reads another's counter."""
    seed, requests = 0xDEADBEEF_12345678, [0, 7, MASK]
    coins = Philox(seed, torch.tensor(requests, device=device))
    depth = torch.tensor([3, 0, 900], device=device)
    for kind, code in (("draft", 0), ("accept", 1), ("emit", 2), ("agree", 3)):
        assert KINDS[kind] == code
        for candidate in (None, 0, 5):
            site = (kind, depth) if candidate is None else (kind, depth, candidate)
            for lane, request in enumerate(requests):
                which = 0 if candidate is None else candidate + 1
                words = scalar_philox((request, int(depth[lane]), 1 << 8 | code, which), (seed & MASK, seed >> 32))
                u24, u53 = words[0] >> 8, words[0] << 21 | words[1] >> 11
                one = torch.ones(3, dtype=torch.float64, device=device)
                assert not coins.accept(one * u24 * 2.0**-24, one, site)[lane]
                assert coins.accept(one * (u24 + 1) * 2.0**-24, one, site)[lane]
                split = torch.tensor([[u53, 2**53 - u53]] * 3, dtype=torch.float64, device=device)
                assert coins.choose(split, site)[lane] == 1
                assert coins.choose(split + torch.tensor([1.0, -1.0], device=device), site)[lane] == 0


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**64 - 1),
    request=st.integers(0, MASK),
    place=st.integers(0, 1000),
    vocabulary=st.integers(2**17 + 2, 2**18),
    data=st.data(),
)
def test_choose_tells_neighbours_on_the_53_bit_grid_apart(
    seed: int, request: int, place: int, vocabulary: int, data: st.DataObject
) -> None:
    """Kills a choose of fewer bits, in any of its texts: far out in a wide row two tokens meet between two points of
    the 24-bit grid, first at the uniform and then one step of the 53-bit grid above it."""
    words = scalar_philox((request, place, 1 << 8 | KINDS["emit"], 0), (seed & MASK, seed >> 32))
    u = words[0] << 21 | words[1] >> 11
    low, high = data.draw(st.lists(st.integers(2**17, vocabulary - 1), min_size=2, max_size=2, unique=True).map(sorted))
    coins = Philox(seed, torch.tensor([request]))
    empty = torch.empty((1, 0), dtype=torch.int64)
    for mass, chosen in ((u, high), (u + 1, low)):
        row = torch.zeros(1, vocabulary, dtype=torch.float64)
        row[0, low], row[0, high] = mass * 2.0**-53, (2**53 - mass) * 2.0**-53
        assert coins.choose(row, ("emit", place)).tolist() == [chosen]
        assert exact_choose(Fraction(u, 2**53), [Fraction(x) for x in (mass, 2**53 - mass)]) == (chosen == high)
        shifted, nothing = Shifted(coins, place), torch.empty(1, 0, vocabulary, dtype=torch.float64)
        verified = compiled(leviathan)(row[None], Block(empty, empty, nothing), shifted)
        assert verified.tokens.tolist() == [[chosen]]


def test_scheme_is_named() -> None:
    """Kills a silent change of what a counter means: recorded runs depend on it."""
    assert SCHEME == 1
    assert KINDS == {"draft": 0, "accept": 1, "emit": 2, "agree": 3}


def test_philox_does_not_see_its_company() -> None:
    """Kills draws that depend on batch size, order, or on how many were made before."""
    requests = torch.tensor([11, 2, 5, 8])
    weights = torch.rand(4, 9, generator=torch.Generator().manual_seed(0))
    together = Philox(1, requests).choose(weights, ("emit", torch.tensor([4, 3, 2, 1])))
    for lane in range(4):
        alone = Philox(1, requests[lane : lane + 1])
        alone.accept(torch.ones(1), torch.ones(1), ("accept", 0))
        assert alone.choose(weights[lane : lane + 1], ("emit", 4 - lane)) == together[lane]


def test_philox_refuses_bad_seeds_requests_and_sites() -> None:
    """Kills a seed or request that is cut to 32 bits in silence, and a misspelt site that gets a coin anyway."""
    good = torch.tensor([0])
    for seed in (-1, 1 << 64):
        with pytest.raises(ValueError, match="seed"):
            Philox(seed, good)
    assert Philox((1 << 64) - 1, torch.tensor([MASK])).accept(torch.ones(1), torch.ones(1), ("accept", 0)).shape == (1,)
    wrong = (torch.tensor([0, -1]), torch.tensor([1 << 32, 0]), torch.tensor([0.0]), torch.tensor(0))
    for requests in wrong:
        with pytest.raises(ValueError, match="requests"):
            Philox(0, requests)
    for site in (
        ("acept", 0),
        (0, 0),
        ("accept",),
        ("accept", 0, 0, 0),
        ("accept", "0"),
        ("accept", "0", 1),
        ("accept", 0, "1"),
    ):
        with pytest.raises(ValueError, match="no site"):
            Philox(0, good).accept(torch.ones(1), torch.ones(1), site)


def test_accept_is_strict_and_made_in_float64() -> None:
    """Kills `<=` (accepts probability 0 at u = 0), a comparison in float32, and a NaN that passes."""
    assert accept_below(
        doubles(0.0, 0.5, 0.0, 0.0), doubles(0, 0.5, 1, float("nan")), doubles(1, 1, 0, 1)
    ).tolist() == [
        False,
        False,
        True,
        False,
    ]
    almost = doubles(1 - 2.0**-24)
    third = torch.tensor([1 / 3])
    assert accept_below(almost, third, third).item()
    assert not accept_below(almost, third.double() * almost, third).item()


def test_choose_is_the_first_token_whose_sum_is_above() -> None:
    """Kills `<=`, a total taken from elsewhere, and a token of weight 0 at either end or in between."""
    weights = doubles(0, 1, 0, 2, 1, 0).expand(5, -1)
    assert choose_below(doubles(0, 0.25, 0.5, 0.75, 1 - 2.0**-53), weights).tolist() == [1, 3, 3, 4, 4]


def test_choose_stays_on_the_support_in_every_rounding_corner() -> None:
    """Kills an index past the end, or the last token with weight 0, when u * total rounds up to the last sum."""
    largest = doubles(1 - 2.0**-53)
    for weights in ([0.1] * 10 + [0.0], [5e-324, 0.0], [0.0, 3e-310, 0.0], [1.0, 1e-30, 0.0]):
        chosen = int(choose_below(largest, doubles(*weights)[None]))
        assert weights[chosen] > 0
    # u = 1 cannot come from a generator; it stands for a product that has rounded up to the total.
    assert choose_below(doubles(1.0), doubles(1, 2, 0, 0)[None]).tolist() == [1]


def test_choose_gives_nothing_where_nothing_has_mass() -> None:
    """Kills an idle lane that raises or returns a real token."""
    nan = float("nan")
    assert choose_below(doubles(0.5, 0.5, 0.5), torch.tensor([[0.0, 0.0], [nan, nan], [1.0, 1.0]])).tolist() == [
        -1,
        -1,
        1,
    ]


def test_recorded_is_strict() -> None:
    """Kills uniforms that are missing, reused by a lane, or left over without anybody noticing."""
    ones = torch.ones(2)
    with pytest.raises(ValueError, match="no uniform"):
        Recorded({}).accept(ones, ones, ("accept", 0))
    coins = Recorded({("emit", 0): Fraction(1, 2), ("emit", 1): doubles(0.0, 0.75), ("accept", 9): 0.5})
    weights = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    assert coins.choose(weights, ("emit", torch.tensor([0, 1]))).tolist() == [1, 1]
    assert coins.choose(weights, ("emit", torch.tensor([1, 0]))).tolist() == [0, 1]
    with pytest.raises(ValueError, match="twice"):
        coins.choose(weights, ("emit", 1))
    coins = Recorded({("emit", 0): 0.5, ("emit", 1): 0.5, ("accept", 9): 0.5})
    for site in ((0, 1), (1, 0)):  # each lane uses each of the two once
        coins.choose(weights, ("emit", torch.tensor(site)))
    for site in ((0, 9), (9, 0)):  # one lane alone uses one again
        with pytest.raises(ValueError, match="twice"):
            Recorded(coins.table | {("emit", 9): 0.5}, dict(coins.used)).choose(weights, ("emit", torch.tensor(site)))
    with pytest.raises(ValueError, match=r"accept.*9.*never used"):
        coins.finish()
    assert coins.accept(ones * 0.75, ones, ("accept", torch.tensor([9, 9]))).tolist() == [True, True]
    coins.finish()


def test_recorded_tells_candidates_apart() -> None:
    """Kills a lookup that ignores the candidate, or takes one lane's site for all."""
    coins = Recorded({("accept", 0, 3): 0.2, ("accept", 1, 3): 0.8})
    half = torch.full((3,), 0.5)
    asked = coins.accept(half, torch.ones(3), ("accept", torch.tensor([0, 1, 0]), 3))
    assert asked.tolist() == [True, False, True]


def test_branching_hands_every_decision_to_its_chance() -> None:
    """Kills lost odds, floats where Fractions were asked for, and a coin that serves two decisions."""
    num, den, weights = torch.tensor([0.25]), torch.tensor([0.75]), torch.tensor([[0.5, 0.0, 0.25]])

    def program(chance: Record) -> tuple[bool, int]:
        coins = Branching(chance, rational=True)
        return bool(coins.accept(num, den, ("accept", 0))), int(coins.choose(weights, ("emit", torch.tensor([2]))))

    found = {result: weight for result, weight, _ in runs(program)}
    third = Fraction(1, 3)
    assert found == {
        (True, 0): third * 2 / 3,
        (True, 2): third / 3,
        (False, 0): 2 * third * 2 / 3,
        (False, 2): 2 * third / 3,
    }
    record = Record(Enumerate())
    Branching(record).choose(weights, ("emit", torch.tensor([2])))
    assert record.trace[0].site == ("emit", 2)
    assert record.trace[0].odds == (0.5, 0.0, 0.25)
    assert all(type(w) is float for w in record.trace[0].odds)
    twice = Branching(Enumerate())
    twice.accept(num, den, ("accept", 0, 1))
    with pytest.raises(ValueError, match="twice"):
        twice.choose(weights, ("accept", 0, 1))


def test_branching_is_for_one_lane() -> None:
    """Kills a batch whose other lanes silently follow the first."""
    two = torch.ones(2)
    for ask in (
        lambda coins: coins.accept(two, two, ("accept", 0)),
        lambda coins: coins.choose(torch.ones(2, 3), ("emit", 0)),
    ):
        with pytest.raises(ValueError, match="one lane"):
            ask(Branching(Enumerate()))


def test_shifted_gives_every_round_its_own_coins() -> None:
    """Kills two rounds that share a coin (only an emit stands at its absolute position), and a shifted candidate."""
    uniforms = {
        ("accept", 4 * DEPTHS + 1, 2): 0.0,
        ("accept", 7 * DEPTHS + 1, 2): 1.0,
        ("emit", 4): 0.0,
        ("emit", 8): 0.9,
        ("draft", 3 * DEPTHS): 0.0,
    }
    coins = Recorded(uniforms)
    offset, ones = torch.tensor([4, 7]), torch.ones(2)
    assert Shifted(coins, offset).accept(ones, ones, ("accept", 1, 2)).tolist() == [True, False]
    assert Shifted(coins, offset).choose(torch.ones(2, 2), ("emit", torch.tensor([0, 1]))).tolist() == [0, 1]
    assert Shifted(coins, 3).choose(torch.ones(1, 2), ("draft", 0)).tolist() == [0]
    coins.finish()
