"""Checks of the batched coins: known answers, grids, addresses, and strictness."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from refengine.bugs.checks.chances import Case, first, refusal, refused
from refengine.bugs.checks.violation import Violation
from refengine.engine import coins
from refengine.engine.coins import Branching, Philox, Recorded, Shifted
from refengine.exact.chance import Enumerate, Replay

M32 = (1 << 32) - 1
# Random123's kat_vectors for philox4x32 with 10 rounds: counter, key, result.
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((M32,) * 4, (M32,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
# A site, and what its counter holds: position, kind, candidate (0 where there is none).
SITES: tuple[tuple[Any, int, int, int], ...] = (
    (("draft", 7), 7, 0, 0),
    (("accept", 0), 0, 1, 0),
    (("emit", 7), 7, 2, 0),
    (("agree", 7, 0), 7, 3, 1),
    (("accept", 2, 6), 2, 1, 7),
    (("accept", 70_001 * 1024 + 3, 299), 70_001 * 1024 + 3, 1, 300),
)
REQUESTS = (2, 70_000, (1 << 32) - 2)


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def boundaries() -> Violation | None:
    """The batched comparisons are strict at their edges, exact in float64, and never take a weight of zero."""
    return first(_boundaries())


def _boundaries() -> Iterator[Case]:
    want: Any
    grid, tiny = 2.0**-24, 2.0**-53
    for num, den, u, want in (
        (0.0, 1.0, 0.0, False), (0.0, 0.0, 0.0, False), (1.0, 0.0, 0.5, True), (0.5, 1.0, 0.5, False),
        (0.5, 1.0, 0.5 - grid, True), (2.0, 1.0, 1 - grid, True), (1.0, 1.0, 1 - grid, True),
    ):  # fmt: skip
        got = bool(coins.accept_below(doubles(u), doubles(num), doubles(den))[0])
        yield f"accept_below({u}, {num}, {den})", got, want
    # In float32 the product is rounded up to num, and the comparison would be lost.
    high, tenth = doubles(1 - 3 * grid), torch.tensor([0.1])
    got = bool(coins.accept_below(high, (high * tenth.double()).float(), tenth)[0])
    yield "accept_below compares in float64", got, True
    for weights, u, want in (
        ((1, 1), 0.5, 1), ((1, 1), 0.5 - tiny, 0), ((0, 1, 0), 0.0, 1), ((0, 1, 0), 1 - tiny, 1), ((2, 0, 2), 0.5, 2),
        ((1, 2, 1), 0.25, 1), ((1, 2, 1), 0.75, 2), ((3, 1, 0), 1 - tiny, 1), ((0, 0, 0), 0.5, -1), ((5,), 0.9, 0),
    ):  # fmt: skip
        yield f"choose_below({u}, {weights})", int(coins.choose_below(doubles(u), doubles(*weights)[None])[0]), want
    thin = torch.tensor([[1.0, 2.0**-30]])  # in float32 the second token would add nothing to the sum
    yield "choose_below sums in float64", int(coins.choose_below(doubles(1 - tiny), thin)[0]), 1
    # u * total rounds up to the last sum: the last token that has weight is meant.
    rounding = doubles(2.0**-1074, 0.0)[None]
    yield "choose_below where rounding reaches the end", int(coins.choose_below(doubles(1 - tiny), rounding)[0]), 0


def philox() -> Violation | None:
    """Known answers; 24 and 53 bits of the words; every address its own uniform, whatever the batch and the order."""
    return first(_philox())


def _philox() -> Iterator[Case]:
    for counter, key, want in KNOWN:
        words: Any = tuple(torch.tensor([c]) for c in counter)
        yield "philox4x32-10", tuple(int(w) for w in coins.philox4x32(words, key)), want
    seed = 3 << 40 | 5
    generator = Philox(seed, torch.tensor(REQUESTS))
    for site, *words in SITES:
        position, kind, candidate = (torch.tensor([word] * 3) for word in words)
        high, low, _, _ = coins.philox4x32(
            (torch.tensor(REQUESTS), position, kind + (1 << 8), candidate), (seed & M32, seed >> 32)
        )
        u24 = (high >> 8).double() / 2**24
        u53 = (high * 2**21 + (low >> 11)).double() / 2**53
        for shift in (0.0, 2.0**-24):  # on the uniform itself False, one grid point above it True
            yield f"24 bits at {site}", generator.accept(u24 + shift, torch.ones(3), site).tolist(), [shift > 0] * 3
        for cut, token in ((u53, 1), (u53 + 2.0**-53, 0)):
            yield f"53 bits at {site}", generator.choose(torch.stack((cut, 1 - cut), 1), site).tolist(), [token] * 3
    places: Any = [
        ("draft", 1),
        ("accept", 1),
        ("emit", 1),
        ("accept", 2),
        ("accept", 1, 0),
        ("accept", 1, 1),
        ("agree", 1, 1),
    ]
    seen = [_uniform(Philox(s, torch.tensor([r])), site) for s in (0, 1, 1 << 32) for r in (0, 1) for site in places]
    yield "addresses with a uniform of their own", len(set(seen)), 6 * len(places)
    tensor_site: Any = ("accept", torch.tensor([4, 5, 6]), torch.tensor([0, 1, 2]))
    many = Philox(9, torch.arange(300)).choose(torch.ones(300, 1 << 16), ("emit", 1)).tolist()
    yield "300 lanes", many, [_uniform(Philox(9, torch.tensor([request])), ("emit", 1)) for request in range(300)]
    together = Philox(9, torch.tensor([1, 2, 3])).choose(torch.ones(3, 1 << 16), tensor_site).tolist()
    alone = [_uniform(Philox(9, torch.tensor([i + 1])), ("accept", 4 + i, i)) for i in range(3)]
    yield "lanes with sites of their own", together, alone
    yield "the largest seed and request", _uniform(Philox((1 << 64) - 1, torch.tensor([M32])), ("emit", 0)) >= 0, True
    for bad in (-1, 1 << 64):
        yield refused(lambda b=bad: Philox(b, torch.tensor([0])), "seed lies in [0, 2^64)")  # type: ignore[misc]
    for request in (-1, 1 << 32):
        yield refused(lambda r=request: Philox(0, torch.tensor([0, r])), "must lie in [0, 2^32)")  # type: ignore[misc]
    for requests in (torch.zeros(1), torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, dtype=torch.int32)):
        yield refused(lambda r=requests: Philox(0, r), "requests must be int64 [B]")  # type: ignore[misc]
    strange: list[Any] = [("draft",), ("draft", 1, 2, 3), ("other", 1), (1, 1), ("draft", "1")]
    for site in strange:
        yield refused(lambda s=site: _uniform(Philox(0, torch.tensor([0])), s), "is no site")  # type: ignore[misc]
    lettered: Any = ("draft", 1, "2")
    yield refused(lambda: _uniform(Philox(0, torch.tensor([0])), lettered), "a candidate is a number")


def _uniform(generator: Philox, site: Any) -> int:
    """The first 16 bits of the uniform at a site."""
    return int(generator.choose(torch.ones(1, 1 << 16), site)[0])


def interpreters() -> Violation | None:
    """Recorded, Branching and Shifted do what they say, and are strict about missing, double and unused uniforms."""
    return first(_interpreters())


def _interpreters() -> Iterator[Case]:
    half, two = doubles(0.5), doubles(0.5, 0.5)
    table: Any = {("accept", 0): Fraction(1, 2), ("emit", 0): doubles(0.25, 0.75), ("emit", 1): 0.5, ("emit", 2): 0.0}
    recorded = Recorded(table)
    yield "Recorded accept", recorded.accept(doubles(1, 2), doubles(2, 3), ("accept", 0)).tolist(), [False, True]
    per_lane: Any = ("emit", torch.tensor([0, 1]))
    yield "Recorded choose", recorded.choose(torch.ones(2, 4), per_lane).tolist(), [1, 2]
    yield refused(recorded.finish, "[('emit', 2)] and never used")
    yield refused(lambda: recorded.accept(two, two, ("accept", 0)), "('accept', 0) is used twice")
    yield refused(lambda: recorded.choose(torch.ones(2, 2), per_lane), "is used twice")
    yield refused(lambda: recorded.accept(half, half, ("accept", 5)), "no uniform was given for ('accept', 5)")
    yield (
        "Recorded, other lanes free",
        recorded.choose(torch.ones(2, 4), ("emit", torch.tensor([1, 0]))).tolist(),
        [2, 3],
    )
    recorded.choose(torch.ones(2, 2), ("emit", 2))
    yield "Recorded finish", refusal(recorded.finish), ""
    for rational, odds in ((True, (Fraction(1, 2), Fraction(3, 4))), (False, (0.5, 0.75))):
        chance = Enumerate()
        branching = Branching(chance, rational)
        yield "Branching accept", branching.accept(half, doubles(0.75), ("accept", 1)).tolist(), [True]
        yield "Branching choose", branching.choose(doubles(0.0, 2.0)[None], ("emit", torch.tensor([1]))).tolist(), [1]
        decisions = [(d.site, d.odds, type(d.odds[0])) for d in chance.trace]
        kind = type(odds[0])
        yield "Branching passes on", decisions, [(("accept", 1), odds, kind), (("emit", 1), (0, 2), kind)]
        yield refused(lambda b=branching: b.accept(half, half, ("accept", 1)), "decided twice")  # type: ignore[misc]
        yield refused(lambda b=branching: b.choose(half[None], ("accept", 1)), "decided twice")  # type: ignore[misc]
    plain = Enumerate()
    Branching(plain).accept(half, doubles(0.75), ("accept", 0))
    yield "Branching passes on floats unless told otherwise", type(plain.trace[0].odds[0]), float
    yield (
        "Branching False",
        Branching(Replay([(("accept", 0), False)])).accept(half, doubles(1), ("accept", 0)).tolist(),
        [False],
    )
    yield from _shifted()


def _shifted() -> Iterator[Case]:
    for offset, want in ((3, [3 * 1024 + 2] * 2), (torch.tensor([3, 5]), [3 * 1024 + 2, 5 * 1024 + 2])):
        for kind, candidate in itertools.product(("draft", "accept", "agree", "emit"), (None, 4)):
            places = [n // 1024 + 2 for n in want] if kind == "emit" else want
            tail = () if candidate is None else (candidate,)
            table: Any = {
                (kind, n, *tail): doubles(0.1 + 0.5 * lane, 0.1 + 0.5 * lane) for lane, n in enumerate(places)
            }
            site: Any = (kind, 2, *tail)
            expected = [0.1] * 2 if len(set(places)) == 1 else [0.1, 0.6]
            if len(set(places)) == 1:
                table = {next(iter(table)): doubles(0.1, 0.1)}
            cut = doubles(*expected)
            above = Shifted(Recorded(table), offset).accept(cut + 0.01, torch.ones(2), site)
            below = Shifted(Recorded(table), offset).choose(torch.stack((cut, 1 - cut), 1), site)
            yield f"Shifted {site} by {offset}", (above.tolist(), below.tolist()), ([True] * 2, [1] * 2)
