"""L = (T_draft + T_verify) / tau, its break-even conditions, and the cost (gamma + 1) / tau."""

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import sympy as sp

from proofs.symbolic.speed import NO_DRAFT, cost, deeper, emitted, latency, speedup

alpha, c, gamma, draft, verify = sp.symbols("alpha c gamma draft verify", positive=True)
GRID = [Fraction(k, 12) for k in range(1, 12)]


@pytest.mark.parametrize("drafts", range(9))
def test_closed_form(drafts: int) -> None:
    """Leviathan 2023, Eq. 1: (1 - alpha^(gamma+1)) / (1 - alpha) emitted. Kills an exponent off by one."""
    closed = (1 - alpha ** (drafts + 1)) / (1 - alpha)
    assert sp.simplify(emitted([alpha] * drafts) - closed) == 0


def test_latency_is_all_time_over_all_tokens() -> None:
    """Rounds of any tokens: time over tokens is L with tau = all tokens over all rounds. Of two texts of 12 tokens, in
    6 rounds and in 2, the mean of the texts' taus, 2 and 6, is another number. Kills an L with that mean.
    """
    for count in range(1, 9):
        tokens, time = sum(sp.symbols(f"n:{count}", positive=True)), count * (draft + verify)
        assert sp.simplify(time / tokens - latency(draft, verify, tokens / count)) == 0
    time, tokens = 8 * (draft + verify), 24
    assert sp.simplify(time / tokens - latency(draft, verify, sp.Rational(2 + 6, 2))) != 0


def test_speedup_of_an_autoregressive_drafter() -> None:
    """Leviathan 2023, Thm 3.8. Kills a formula without the draft's cost."""
    for gamma in range(9):
        closed = (1 - alpha ** (gamma + 1)) / ((1 - alpha) * (gamma * c + 1))
        assert sp.simplify(speedup(gamma * c, 1, emitted([alpha] * gamma)) - closed) == 0


def test_break_even_is_tau_above_total_time() -> None:
    """Speculation is faster iff tau > T_draft + T_verify. Kills the belief that tau > 1 is enough (seed 003: 0.85x)."""
    tau = sp.symbols("tau", positive=True)
    assert sp.simplify(latency(draft, verify, tau) - 1 - (draft + verify - tau) / tau) == 0
    assert speedup(Fraction(2), Fraction(1), Fraction(259, 100)) < 1 < Fraction(259, 100)


def test_some_gamma_pays_iff_alpha_exceeds_c() -> None:
    """Leviathan 2023, Cor. 3.9: with T_verify = 1, some gamma pays iff alpha > c (gamma = 1 does); all reals."""
    z3 = pytest.importorskip("z3", reason="not tested: z3-solver is not installed")
    a, c, g, total = z3.Reals("a c g total")
    one, _ = deeper(*NO_DRAFT, a)
    given = [a >= 0, a <= 1, c >= 0, g >= 1, total > 0]
    assert sure(z3, (speedup(c, 1, one) > 1) == (a > c), *given)
    assert sure(z3, z3.Implies(speedup(g * c, 1, total) > 1, a > c), *given, total <= 1 + g * a)


def test_no_gamma_pays_below_break_even() -> None:
    """The reason: 1 + alpha + ... + alpha^gamma <= 1 + gamma alpha, for every gamma by induction; all real alpha."""
    z3 = pytest.importorskip("z3", reason="not tested: z3-solver is not installed")
    a, g, total, survival = z3.Reals("a g total survival")

    def bound(g: object, total: object, survival: object) -> object:
        return z3.And(total <= 1 + g * a, total >= 1, survival >= 0, survival <= a)  # type: ignore[operator]

    given = [a >= 0, a <= 1]
    assert sure(z3, bound(1, *deeper(*NO_DRAFT, a)), *given)
    assert sure(z3, bound(g + 1, *deeper(total, survival, a)), *given, g >= 1, bound(g, total, survival))
    assert not sure(z3, bound(g + 1, *deeper(total, survival, a + 1)), *given, g >= 1, bound(g, total, survival))


def sure(z3: Any, goal: object, *given: object) -> bool:
    """Whether z3 proves it of all reals; raises where it cannot tell."""
    from proofs.smt.real import asked

    return asked([*given, z3.Not(goal)]) is None


def test_parallel_drafter_limit() -> None:
    """One draft pass for any gamma: the speed-up tends to 1 / ((1 - alpha)(1 + c)): it pays iff alpha > c/(1 + c)."""
    a = sp.symbols("a", positive=True)
    n = sp.symbols("n", integer=True, positive=True)
    tau = (1 - a ** (n + 1)) / (1 - a)
    limit = sp.limit(speedup(c, 1, tau.subs(a, sp.Rational(1, 3))), n, sp.oo)
    assert sp.simplify(limit - 1 / (sp.Rational(2, 3) * (1 + c))) == 0
    assert sp.solve(1 / ((1 - a) * (1 + c)) - 1, a) == [c / (c + 1)]


def test_cost_grows_with_gamma() -> None:
    """(gamma + 1) / tau is 1 at gamma = 0 and falls with no draft, for every gamma by induction and every acceptance of
    each depth: of the depths before nothing is assumed but that tau is no less than gamma + 1 times what survives."""
    z3 = pytest.importorskip("z3", reason="not tested: z3-solver is not installed")
    a, g, total, survival = z3.Reals("a g total survival")

    def heavy(g: object, total: object, survival: object) -> object:
        return z3.And(total >= (g + 1) * survival, survival >= 0, total >= 1)  # type: ignore[operator]

    given, more = [a >= 0, a <= 1, g >= 0, heavy(g, total, survival)], deeper(total, survival, a)
    assert cost(0, NO_DRAFT[0]) == 1
    assert sure(z3, heavy(0, *map(z3.RealVal, NO_DRAFT)))
    assert sure(z3, heavy(g + 1, *more), *given)
    assert sure(z3, cost(g, total) <= cost(g + 1, more[0]), *given)
    assert sure(z3, cost(g, total) < cost(g + 1, more[0]), *given, a < 1, survival > 0)
    assert not sure(z3, cost(g, total) < cost(g + 1, more[0]), *given)


def test_shorter_blocks_cost_less_whatever_their_acceptance() -> None:
    """Each further position adds one row and no more than one token: less than the mean of those before it, or as much.

    Acceptances of nine depths in any order, 0 and 1 among them. Kills a cost that falls where a deep position is
    accepted more often than one before it.
    """
    source = random.Random(0)
    for _ in range(200):
        alphas = [Fraction(source.randint(0, 4), 4) for _ in range(9)]
        assert all(x <= y for x, y in pairwise(cost(g, emitted(alphas[:g])) for g in range(10)))


def test_a_cut_of_the_wrong_blocks_costs_more() -> None:
    """Half of the blocks have ten drafts that are all kept, half one that never is. Cutting the former, as a confidence
    that is turned round does, raises rows for a token from 13/12 to 3/2; cutting the latter lowers it to 1.

    Kills "pruning lowers the cost" said of any cut.
    """

    def together(*blocks: tuple[int, int]) -> Fraction:  # drafted, kept
        return Fraction(sum(n + 1 for n, _ in blocks), sum(kept + 1 for _, kept in blocks))

    assert together((10, 10), (1, 0)) == Fraction(13, 12)
    assert together((0, 0), (1, 0)) == Fraction(3, 2)
    assert together((10, 10), (0, 0)) == 1


def test_cost_is_one_only_for_a_perfect_draft() -> None:
    """alpha = 1: every verified position becomes a token. Kills a cost that forgets the bonus position."""
    assert all(cost(g, emitted([Fraction(1)] * g)) == 1 for g in range(10))


def test_pruning_lowers_tau_and_speed_at_batch_one() -> None:
    """With T_verify flat, cutting the tail never helps one stream: tau falls, T_draft stays (seed 003, section 5)."""
    for a in GRID:
        speeds = [speedup(Fraction(1, 4), 1, emitted([a] * g)) for g in range(8)]
        assert speeds == sorted(speeds)
