"""Obligations at one token, with the sums over all others as free reals: they hold for every vocabulary size.

What is trusted beside z3: that finite sums are linear, and that nonnegative terms with sum zero are all zero. Where a
quantity is computed by `refengine.exact` (acceptance, residual, prefix weights), its code is run on the one token.
"""

import pytest

pytest.importorskip("z3", reason="not tested: z3-solver is not installed")

import z3

from proofs.smt.chance import SymbolicChance
from proofs.smt.judge import probability
from proofs.smt.real import Atom, GaveUp, Real, Term, World, asked, term
from refengine.exact.block import chain
from refengine.exact.row import residual
from refengine.exact.rules.block import prefix_weights

p, q, r, s, w = z3.Reals("p q r s w")
ROW = [p >= 0, p <= 1, q >= 0, q <= 1]


def proved(goal: Atom, *assumed: Atom) -> bool:
    """z3 proves the goal from assumptions that have an instance."""
    assert asked(list(assumed)) is not None, "vacuous"
    return asked([*assumed, z3.Not(goal)]) is None


def accepted(num: Term, den: Term) -> Term:
    """P(accept) at odds num : den, by the running definition."""
    world = World(assumed=[num >= 0, den >= 0])
    leaves = world.leaves(lambda: SymbolicChance(world).accept(Real(num, world), Real(den, world), ("accept", 0)))
    return probability(leaves, lambda yes: yes)


def computed(terms: list[Term], program: object, *assumed: Atom) -> Term:
    """What a program of `refengine.exact` computes from reals, as one term over all of its comparisons."""
    world = World(assumed=list(assumed))
    leaves = world.leaves(lambda: program(*(Real(t, world) for t in terms)))  # type: ignore[operator]
    out = z3.RealVal(0)
    for leaf in leaves:
        here = z3.And([step.atom if step.side == 0 else z3.Not(step.atom) for step in leaf.path])
        out = z3.If(here, term(leaf.result), out)
    return out


excess = computed([p, q], lambda a, b: residual((a,), (b,))[0], *ROW)  # (p - q)+ at the token


def test_kept_and_replaced_mass_add_up_to_p() -> None:
    """Leviathan 2023, App. A.1, at one token; s is the sum of (p - q)+. Kills: wrong ratio, unclamped residual."""
    replaced = z3.If(s > 0, s * (excess / s), 0)
    assert proved(q * accepted(p, q) + replaced == p, *ROW, s >= excess)


def test_rejected_mass_is_the_mass_of_the_residual() -> None:
    """q - q min(1, p / q) = (q - p)+, whose sum is that of (p - q)+. Kills: a residual of another mass."""
    other = computed([q, p], lambda a, b: residual((a,), (b,))[0], *ROW)
    assert proved(q * (1 - accepted(p, q)) == other, *ROW)
    assert proved(excess - other == p - q, *ROW)


def test_acceptance_is_one_minus_tv() -> None:
    """min(p, q) = (p + q - |p - q|) / 2 at one token; summed, 1 - TV."""
    assert proved(q * accepted(p, q) == (p + q - z3.If(p >= q, p - q, q - p)) / 2, *ROW)


def test_no_rule_keeps_more() -> None:
    """A lossless rule that keeps x with probability w emits x at least q w often, so q w <= p."""
    assert proved(q * w <= q * accepted(p, q), *ROW, w >= 0, w <= 1, q * w <= p)


def test_agreement_keeps_less() -> None:
    """p q <= min(p, q): the agreement rule never accepts more often than the ratio rule."""
    assert proved(p * q <= q * accepted(p, q), *ROW)


def test_block_summand() -> None:
    """Sun et al. 2024, the invariant at one token: kept weight and residual make w p. Kills: no clip, no carried w."""

    def second_weight(p0: Real, q0: Real, p1: Real, q1: Real) -> Real:
        block = chain((0, 0), ((q0,), (q1,)), (None, None))  # type: ignore[arg-type]
        return prefix_weights(((p0,), (p1,)), block)[2]  # type: ignore[arg-type, return-value]

    p0, q0 = z3.Reals("p0 q0")
    rows = [*ROW, p0 >= 0, p0 <= 1, q0 > 0, q0 <= 1]
    carried = z3.If(p0 < q0, p0 / q0, 1)
    left = z3.If(carried * p > q, carried * p - q, 0)
    weight = computed([p0, q0, p, q], second_weight, *rows)
    assert proved(q * weight + left == carried * p, *rows)


def test_block_keeps_at_least_as_much() -> None:
    """min(1, w r) >= min(1, w) min(1, r), so the block rule's prefix weights are at least the token rule's products."""

    def least(x: Term) -> Term:
        return z3.If(x < 1, x, 1)

    assert proved(least(w * r) >= least(w) * least(r), w >= 0, r >= 0)


def test_point_mass_step() -> None:
    """After refusing a sibling of mass q out of s, every other token keeps its chance. Kills: no renormalisation."""
    refused = 1 - accepted(q, s)
    assert proved(p / s == refused * (p / (s - q)), p >= 0, q >= 0, s > q, p <= s - q)


def test_drift_step() -> None:
    """|a b - a' b'| <= |a - a'| b + a' |b - b'|: per-step TV adds up over steps, it does not multiply."""
    a, b, a2, b2 = z3.Reals("a b a2 b2")

    def gap(x: Term, y: Term) -> Term:
        return z3.If(x >= y, x - y, y - x)

    unit = [z3.And(v >= 0, v <= 1) for v in (a, b, a2, b2)]
    assert proved(gap(a * b, a2 * b2) <= gap(a, a2) * b + a2 * gap(b, b2), *unit)


@pytest.mark.parametrize(
    "wrong",
    [q * accepted(q, p) + excess == p, q * accepted(p, q) + p - q == p, q * accepted(p, q) + p == p],
    ids=["ratio upside down", "residual not clamped", "replacement drawn from p"],
)
def test_the_instrument_refuses_wrong_obligations(wrong: Atom) -> None:
    """Kills an instrument that proves everything."""
    assert not proved(wrong, *ROW)


def test_a_question_beyond_the_budget_has_no_answer() -> None:
    """Kills: a z3 that gives up and is taken for a proof, or for a test that need not run."""
    hard = [p * q * r == 2, p * p + q * q == r * s * w, q + r > p * s, p > q, s * w > 1]
    with pytest.raises(GaveUp, match="within 100 units"):
        asked(hard, resources=100)
