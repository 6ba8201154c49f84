"""Laws of what decides: the ways of running one program, coins by their counters, sums and picks, distances of laws.

They stand in `every.py` beside the others.
"""

import math
import random
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from properties.helpers.laws.of_the_engine import amidst
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Branching, Philox, Recorded, Shifted, Site
from refengine.engine.sums import first_above, total
from refengine.exact.block import target_rows
from refengine.exact.card import Card
from refengine.exact.chance import Chance, Decision, Enumerate, Record, Replay, Sample, Uniforms, runs
from refengine.exact.law import tv, witness
from refengine.exact.row import Row, argmax, normalised, overlap, point, residual, row, without
from refengine.strategies import World


def taken(chance: Chance, step: Decision) -> Any:
    """A decision once more."""
    return chance.accept(*step.odds, step.site) if _is_accept(step) else chance.choose(step.odds, step.site)


def _is_accept(step: Decision) -> bool:
    return isinstance(step.outcome, bool)


def a_program_runs_the_same_in_every_way(card: Card, world: World, prompt: Tokens, data: st.DataObject) -> None:
    """Enumerated, replayed, recorded, by uniforms and by a generator; and what is no run of it is refused."""

    def program(chance: Any) -> Tokens:
        block = world.draft(prompt, chance)
        return card.rule(target_rows(world.target, prompt, block), block, chance).tokens

    every = list(runs(program))
    assert sum(weight for _, weight, _ in every) == 1
    result, weight, trace = every[data.draw(st.integers(0, len(every) - 1), label="run")]
    decided, middle = [(step.site, step.outcome) for step in trace], {step.site: amidst(step)[0] for step in trace}
    assert weight == math.prod((_share(step) for step in trace), start=Fraction(1))
    for way in (decided, [(step.site, step.outcome) for step in witness(program, result)]):
        replay = Replay(way)
        assert program(replay) == result
        replay.finish()
    record = Record(given := Uniforms(middle))
    assert program(record) == result
    assert (record.trace, given.unused()) == (trace, [])
    seed = data.draw(st.integers(0, 99), label="seed")
    record, source = Record(Sample(random.Random(seed))), random.Random(seed)
    said = program(record)
    bits = {step.site: 24 if _is_accept(step) else 53 for step in record.trace}
    assert program(Uniforms({site: Fraction(source.getrandbits(n), 1 << n) for site, n in bits.items()})) == said
    if trace:
        _no_other_run_is_taken_for_it(program, trace, decided, middle, data)


def _no_other_run_is_taken_for_it(program: Any, trace: Any, decided: Any, middle: Any, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(trace) - 1), label="decision")
    step, less = trace[at], {site: u for site, u in middle.items() if site != trace[at].site}
    never: Any = len(step.odds) if not _is_accept(step) else not step.outcome if _share(step) == 1 else None
    for chance in (
        Replay([*decided[:at], *decided[at + 1 :]]),
        Replay([*decided[:at], (("draft", 99), step.outcome), *decided[at + 1 :]]),
        *([] if never is None else [Replay([*decided[:at], (step.site, never), *decided[at + 1 :]])]),
        Uniforms(less),
    ):
        with pytest.raises(ValueError, match=r"replay|no uniform"):
            program(chance)
    longer = Replay([*decided, decided[at]])
    program(longer)
    with pytest.raises(ValueError, match="never asked"):
        longer.finish()
    more = Uniforms({**middle, ("draft", 99): Fraction(0)})
    program(more)
    assert more.unused() == [("draft", 99)]
    for twice in (Uniforms(middle), Record(Replay([decided[at]] * 2))):
        taken(twice, step)
        with pytest.raises(ValueError, match="twice"):
            taken(twice, step)


def _share(step: Decision) -> Fraction:
    _, odds = amidst(step)
    return odds[step.outcome] if not _is_accept(step) else odds[0] if step.outcome else 1 - odds[0]


NAN = float("nan")
NO_ODDS = st.sampled_from([(-1, 1), (1, -1), (NAN, 1), (1, NAN), (-1, -2)])
NO_WEIGHTS = st.sampled_from([(2, -1), (-1, 2), (1, NAN), (NAN, 1), (0, 0), ()])


def odds_that_are_none_are_refused(odds: tuple[Any, Any], weights: tuple[Any, ...]) -> None:
    """By whatever decides."""
    accept, choose = ("accept", 0), ("emit", 0)
    for chance in (
        Enumerate,
        lambda: Sample(random.Random(1)),
        lambda: Uniforms({accept: Fraction(0), choose: Fraction(0)}),
        lambda: Replay([(accept, True)]),
        lambda: Record(Uniforms({accept: Fraction(0), choose: Fraction(0)})),
    ):
        with pytest.raises(ValueError, match="accept at"):
            chance().accept(*odds, accept)
    for chance in (Enumerate, lambda: Sample(random.Random(1)), lambda: Replay([(choose, 0)])):
        with pytest.raises(ValueError, match="choose at"):
            chance().choose(weights, choose)


# --- coins -----------------------------------------------------------------------------------------------------------


def words(seed: int, counter: tuple[int, int, int, int]) -> tuple[int, int]:
    """The first two words of Philox4x32-10, in whole numbers."""
    c0, c1, c2, c3 = counter
    k0, k1 = seed % 2**32, seed >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b % 2**32, (a >> 32) ^ c3 ^ k1, a % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1


LANES = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3)


def a_coin_is_that_of_its_counter(
    seed: int, lanes: list[tuple[int, int, int]], kind: str, start: int, alike: bool, single: bool
) -> None:
    """Scheme 1, lane by lane: 24 bits of an accept, 53 of a choice, by request, place, kind of site and candidate."""
    if alike:
        lanes = [(request, *lanes[0][1:]) for request, *_ in lanes]
    depths, candidates = ([lane[i] for lane in lanes] for i in (1, 2))
    site: Site = (kind, depths[0], candidates[0]) if alike else (kind, torch.tensor(depths), torch.tensor(candidates))
    coins = Shifted(Philox(seed, torch.tensor([request for request, *_ in lanes])), start)
    accepts, choices = list[float](), list[float]()
    for request, depth, candidate in lanes:
        place = start + depth if kind == "emit" else start * 1024 + depth
        which = 256 + ("draft", "accept", "emit", "agree").index(kind)
        high, low = words(seed, (request, place, which, 0 if single else candidate + 1))
        accepts.append((high >> 8) / 2**24)
        choices.append(((high << 21) + (low >> 11)) / 2**53)
    site = site[:2] if single else site
    u, one = torch.tensor(accepts, dtype=torch.float64), torch.ones(len(lanes), dtype=torch.float64)
    assert not coins.accept(u, one, site).any()
    assert coins.accept(u + 2.0**-24, one, site).all()
    u = torch.tensor(choices, dtype=torch.float64)
    assert coins.choose(torch.stack((u, 1 - u), 1), site).eq(1).all()
    assert coins.choose(torch.stack((u + 2.0**-53, 1 - u - 2.0**-53), 1), site).eq(0).all()


NO_COINS = st.sampled_from([(-1, [0]), (2**64, [0]), (0, [-1]), (0, [2**32]), (0, [1, 2**32]), (0, [[1]]), (0, [0.5])])
NO_SITE = st.sampled_from([("bonus", 0), ("emit",), (1, 2), ("emit", "1"), ("emit", 1, "2"), ("emit", 1, 2, 3)])


def coins_that_are_none_are_refused(given: tuple[int, Any], site: Any) -> None:
    seed, requests = given
    with pytest.raises(ValueError, match=r"seed|requests"):
        Philox(seed, torch.tensor(requests))
    with pytest.raises(ValueError, match="no site"):
        Philox(1, torch.tensor([0])).choose(torch.ones(1, 2), site)


RECORDED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=4)


def a_recorded_coin_serves_a_lane_once(asked: list[tuple[int, int]], left: bool) -> None:
    """Two lanes ask at depths 0 and 1; each may have each coin, once, and none may be left over."""
    coins = Recorded({("emit", depth): 0.5 for depth in range(2 + left)})
    weights, used = torch.ones(2, 2, dtype=torch.float64), set[tuple[int, int]]()
    for depths in asked:
        now = set(enumerate(depths))
        if used & now:
            with pytest.raises(ValueError, match="used twice"):
                coins.choose(weights, ("emit", torch.tensor(depths)))
            return  # its other lane may have been served before
        used |= now
        assert coins.choose(weights, ("emit", torch.tensor(depths))).tolist() == [1, 1]
    if left or {depth for _, depth in used} != {0, 1}:
        with pytest.raises(ValueError, match="never used"):
            coins.finish()
    with pytest.raises(ValueError, match="no uniform"):
        coins.choose(weights, ("draft", 0))
    one = Branching(Enumerate())
    with pytest.raises(ValueError, match="one lane"):
        one.choose(weights, ("emit", 0))
    one.choose(weights[:1], ("emit", asked[0][0]))
    with pytest.raises(ValueError, match="decided twice"):
        one.choose(weights[:1], ("emit", torch.tensor([asked[0][0]])))


# --- sums and distances ----------------------------------------------------------------------------------------------

SHARES = st.sampled_from((0.0, 0.5, 1 - 2.0**-53)) | st.floats(0, 1, exclude_max=True)
MASSES = st.lists(st.sampled_from((0.0, 1.0, 0.1, 1e-17, 3e-9, 1 / 3)) | st.floats(0, 1), min_size=1, max_size=9)


def a_pick_has_weight(weights: list[float], share: float, zeros: int) -> None:
    """Whatever was rounded, two by two; zeros behind a row, and lanes beside it, change no bit of it."""
    row = torch.tensor(weights, dtype=torch.float64)
    u = torch.tensor([share], dtype=torch.float64)
    mass, at = total(row), int(first_above(u, row[None]))
    slack = len(weights).bit_length() * 2.0**-52 * math.fsum(weights)
    tree = weights
    while len(tree) > 1:
        tree = [sum(tree[i : i + 2]) for i in range(0, len(tree), 2)]
    assert float(mass) == tree[0]
    longer = torch.cat((row, row.new_zeros(zeros)))
    both = torch.stack((longer, longer.flip(0)))
    assert float(total(longer)) == float(mass)
    assert int(first_above(u.expand(2), both)[0]) == at
    if not any(weights):
        assert at == -1
        return
    bar = share * math.fsum(weights)
    assert weights[at] > 0
    assert math.fsum(weights[:at]) - slack <= bar <= math.fsum(weights[: at + 1]) + slack


def distances_are_what_rows_do_not_share(pair: tuple[Row, Row]) -> None:
    """The total variation of two laws, and what is done to rows on the way to it."""
    p, q = pair
    laws = [{x: share for x, share in enumerate(row) if share > 0} for row in pair]
    assert tv(*laws) == 1 - overlap(p, q) == sum(residual(p, q)) == sum(residual(q, p))
    top = argmax(p)
    assert p[top] == max(p) > max(p[:top], default=Fraction(-1))
    assert tv(laws[0], {top: 1}) == 1 - p[top] == sum(without(p, top))
    assert point(top, len(p)) == row([int(x == top) for x in range(len(p))])
    assert row([str(x * 3) for x in p]) == normalised(p) == p
    for none in ([-1, *p], [0] * len(p)):
        with pytest.raises(ValueError, match=r"negative|no token"):
            row(none)
