"""Chance: the definition of a decision, and the strictness of every interpreter."""

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from refengine.exact.chance import (
    ACCEPT_BITS,
    CHOOSE_BITS,
    DEPTHS,
    Chance,
    Decision,
    Enumerate,
    Record,
    Replay,
    Sample,
    Shifted,
    Uniforms,
    accept_below,
    choose_below,
    place,
    ratio,
    runs,
)

F = Fraction
A, B, C = ("accept", 0), ("emit", 0), ("emit", 1)


def test_accept_is_strict() -> None:
    """Kills `<=`: at u = 0 it accepts a token of probability zero."""
    assert not accept_below(F(0), F(0), F(1))
    assert not accept_below(F(0), F(0), F(0))
    assert not accept_below(F(1, 3), F(1), F(3))
    assert accept_below(F(1, 3) - F(1, 10**9), F(1), F(3))
    assert accept_below(F(0), F(1, 10**9), F(1))
    assert accept_below(F(999, 1000), F(2), F(1))


def test_choose_is_the_first_sum_above() -> None:
    """Kills `<=`, an unscaled u, and a token of weight 0 at an edge."""
    weights = [F(0), F(2), F(0), F(1), F(3), F(0)]
    for u, expected in ((F(0), 1), (F(1, 3) - F(1, 99), 1), (F(1, 3), 3), (F(1, 2), 4), (F(99, 100), 4)):
        assert choose_below(u, weights) == expected
    with pytest.raises(ValueError, match="outside"):
        choose_below(F(1), weights)


def program(chance: Chance) -> tuple[bool, int]:
    """One accept at 1 : 3 and one choose among 1, 0, 2."""
    return chance.accept(F(1), F(3), A), chance.choose([F(1), F(0), F(2)], B)


def test_enumerate_gives_every_run_once_with_its_weight() -> None:
    """Kills a lost or doubled branch, a branch of weight 0, and a weight that is not the product of its odds."""
    found = list(runs(program))
    assert {result: weight for result, weight, _ in found} == {
        (True, 0): F(1, 9),
        (True, 2): F(2, 9),
        (False, 0): F(2, 9),
        (False, 2): F(4, 9),
    }
    assert len(found) == 4
    for (kept, x), _, trace in found:
        assert trace == [Decision(A, kept, (F(1), F(3))), Decision(B, x, (F(1), F(0), F(2)))]


@pytest.mark.parametrize(
    ("num", "den", "outcomes"),
    [
        (0, 1, {False: 1}),
        (0, 0, {False: 1}),
        (1, 1, {True: 1}),
        (2, 1, {True: 1}),
        (1, 0, {True: 1}),
        (1, 2, {True: F(1, 2), False: F(1, 2)}),
    ],
)
def test_enumerate_at_the_edges_of_accept(num: int, den: int, outcomes: dict[bool, Fraction]) -> None:
    """Kills 0 / 0 read as certain, and a branch for what cannot happen."""
    found = list(runs(lambda chance: chance.accept(num, den, A)))
    assert {outcome: weight for outcome, weight, _ in found} == outcomes
    assert len(found) == len(outcomes)


def test_enumerate_notices_a_program_with_other_randomness() -> None:
    """Kills the enumeration of a program whose odds change between runs: its law would be made up."""
    calls = iter(range(99))

    def unstable(chance: Chance) -> int:
        chance.accept(F(1), F(2), A)
        return chance.choose([F(1), F(1)] if next(calls) == 0 else [F(1), F(0)], B)

    with pytest.raises(RuntimeError, match="emit"):
        list(runs(unstable))


def test_weights_of_floats_stay_floats_and_ints_become_fractions() -> None:
    """Kills an integer division that loses exactness, and a Fraction of floats that pretends to have it."""
    assert ratio(1, 3) == F(1, 3)
    assert isinstance(ratio(F(1), 3), Fraction)
    assert isinstance(ratio(1.0, 4), float)
    assert isinstance(ratio(1, 4.0), float)
    (_, weight, _), *_ = list(runs(lambda chance: chance.choose([0.25, 0.5], B)))
    assert weight == pytest.approx(1 / 3, rel=1e-15)


def every_interpreter() -> list[Callable[[], Chance]]:
    return [
        Enumerate,
        lambda: Sample(random.Random(0)),
        lambda: Uniforms({A: F(0), B: F(0)}),
        lambda: Replay([(A, True), (B, 0)]),
        lambda: Record(Enumerate()),
    ]


@pytest.mark.parametrize("interpreter", every_interpreter())
def test_every_interpreter_refuses_odds_that_are_none(interpreter: Callable[[], Chance]) -> None:
    """Kills a NaN or a negative residual that is quietly decided upon, and a refusal that shows other numbers."""
    for num, den in ((-1, 1), (1, -1), (math.nan, 1.0), (1.0, math.nan)):
        with pytest.raises(ValueError, match=rf"accept.*odds {num} : {den} are negative or NaN"):
            interpreter().accept(num, den, A)
    for weights in ([F(2), F(-1)], [F(0), F(-1, 2)], [1.0, math.nan]):
        with pytest.raises(ValueError, match=rf"choose at.*weight 1 is {weights[1]}, negative or NaN"):
            interpreter().choose(weights, B)
    for nothing in ([F(0), F(0)], []):
        with pytest.raises(ValueError, match=r"choose at.*no weight is positive"):
            interpreter().choose(nothing, B)


class Bits(random.Random):
    """A generator that returns given bits and says how many it was asked for."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.asked: list[int] = []

    def getrandbits(self, k: int, /) -> int:
        self.asked.append(k)
        return self.bits


def test_sample_uses_the_grids_of_the_engine() -> None:
    """Kills another number of bits: a 24-bit choose cannot reach every token of a large vocabulary."""
    assert (ACCEPT_BITS, CHOOSE_BITS) == (24, 53)
    bits = Bits(1 << 23)
    assert not Sample(bits).accept(F(1), F(2), A)
    assert Sample(bits).accept(F(1) + F(1, 1 << 24), F(2), A)
    high = Bits(1 << 52)
    assert Sample(high).choose([F(1), F(1)], B) == 1
    assert Sample(high).choose([F(1) + F(1, 1 << 52), F(1)], B) == 0
    assert (bits.asked, high.asked) == ([24, 24], [53, 53])


def test_uniforms_are_strict() -> None:
    """Kills a uniform that is missing, used twice, or left over without anybody noticing."""
    chance = Uniforms({A: F(1, 2), B: F(2, 3), C: F(0)})
    assert not chance.accept(F(1), F(2), A)
    assert chance.choose([F(2), F(1)], B) == 1
    assert chance.unused() == [C]
    with pytest.raises(ValueError, match="twice"):
        chance.accept(F(1), F(2), A)
    with pytest.raises(ValueError, match="no uniform"):
        chance.choose([F(1)], ("emit", 7))


def test_replay_gives_back_what_was_recorded() -> None:
    """Kills a replay that drifts: every recorded run comes out again, decision by decision."""
    for result, _, trace in runs(program):
        replay = Replay([(d.site, d.outcome) for d in trace])
        assert program(replay) == result
        replay.finish()


def test_replay_is_strict_about_sites_outcomes_and_leftovers() -> None:
    """Kills a witness that no longer fits the program and is replayed all the same."""
    with pytest.raises(ValueError, match="was recorded where"):
        Replay([(B, True)]).accept(F(1), F(2), A)
    assert Replay([(B, True)], strict=False).accept(F(1), F(2), A)
    with pytest.raises(ValueError, match="never recorded"):
        Replay([]).accept(F(1), F(2), A)
    for outcome, num, den in ((True, 0, 1), (True, 0, 0), (False, 1, 1), (False, 2, 1), (False, 1, 0)):
        with pytest.raises(ValueError, match="impossible"):
            Replay([(A, outcome)]).accept(num, den, A)
    assert not Replay([(A, False)]).accept(0, 1, A)
    assert all(Replay([(A, True)]).accept(num, den, A) for num, den in ((1, 2), (1, 1), (2, 1), (1, 0)))
    for outcome in (-1, 1, 3):
        with pytest.raises(ValueError, match="no weight"):
            Replay([(B, outcome)]).choose([F(1), F(0), F(2)], B)
    assert [Replay([(B, x)]).choose([F(1), F(0), F(2)], B) for x in (0, 2)] == [0, 2]
    left = Replay([(A, True), (B, 0)])
    left.accept(F(1), F(2), A)
    with pytest.raises(ValueError, match="1 decisions were never asked"):
        left.finish()
    Replay([(A, True)], strict=False).finish()


def test_record_refuses_one_coin_for_two_uses() -> None:
    """Kills the reuse of the acceptance coin for the correction (sglang #7231)."""
    record = Record(Enumerate())
    record.accept(F(1), F(2), A)
    record.choose([F(0), F(3)], B)
    assert record.trace == [Decision(A, True, (F(1), F(2))), Decision(B, 1, (F(0), F(3)))]
    with pytest.raises(ValueError, match="twice"):
        record.choose([F(1)], A)


def test_every_round_has_its_own_coins_but_an_emit_stands_at_its_position() -> None:
    """Kills two rounds that share a coin, in blocks of up to 1,024 nodes: else block verification is lossy."""
    assert place("emit", 3, 7) == 10
    assert place("accept", 3, 7) == place("draft", 3, 7) == 7 * DEPTHS + 3
    assert len({place("draft", d, s) for d in range(1024) for s in range(3)}) == 3 * 1024
    record = Record(Enumerate())
    shifted = Shifted(record, 7)
    shifted.accept(F(1), F(2), ("accept", 3, 5))
    shifted.choose([F(1)], ("emit", 3))
    assert [d.site for d in record.trace] == [("accept", 7 * DEPTHS + 3, 5), ("emit", 10)]
