"""Exposure bias with and without on-policy roll-outs, exactly and by simulation."""

from fractions import Fraction

import pytest
import sympy as sp

from proofs.symbolic.exposure import loss, simulate
from proofs.symbolic.tolerance import hoeffding

EPS = Fraction(1, 50)


@pytest.mark.parametrize("step", range(1, 9))
def test_teacher_forcing_compounds(step: int) -> None:
    """Never taught to recover: 1 - (1 - eps)^k at step k, that is k eps to first order: linear growth.

    Kills a model in which errors do not compound, and the training loss eps taken for the test loss.
    """
    eps = sp.symbols("epsilon")
    assert sp.expand(loss(step, eps, 1) - (1 - (1 - eps) ** step)) == 0
    assert sp.series(loss(step, eps, 1), eps, 0, 2).removeO() == step * eps


@pytest.mark.parametrize("step", range(1, 9))
def test_on_policy_loss_is_flat(step: int) -> None:
    """Taught off the path as well as on it: eps at every step. Taught worse, eps2: never above eps2, whatever k."""
    eps, eps2 = sp.symbols("epsilon epsilon2")
    assert sp.expand(loss(step, eps, eps) - eps) == 0
    assert loss(step, EPS, 10 * EPS) <= 10 * EPS
    limit = sp.solve(sp.Eq(eps * (1 - eps2) + eps2**2, eps2), eps)  # no error rate but eps2 = eps, 1 is stationary
    assert limit == [eps2]


def test_roll_outs_do_not_help_what_cannot_be_learned() -> None:
    """If no drafter of the class can recover (off = 1), on-policy training has that same loss, growing with k.

    Kills "the bound does not scale with the horizon" without its hypothesis: a small loss on the roll-outs must exist.
    """
    assert [loss(k, EPS, Fraction(1)) for k in (1, 2)] == [EPS, 2 * EPS - EPS**2]
    assert loss(40, EPS, Fraction(1)) > 25 * EPS


@pytest.mark.parametrize("off", [Fraction(1), EPS, Fraction(1, 4)], ids=str)
def test_simulation(off: Fraction) -> None:
    """20 000 roll-outs of 8 steps against the formula; indicator, Hoeffding at 1e-9: tolerance 0.023.

    The three formulas are 0.149, 0.02 and 0.026: teacher forcing is told from the others.
    """
    n = 20_000
    assert abs(simulate(8, EPS, off, n, seed=5) - float(loss(8, EPS, off))) < hoeffding(n, 1)
