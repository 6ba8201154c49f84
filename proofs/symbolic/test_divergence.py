"""KL, total variation, acceptance: what Pinsker gives, and what it does not."""

import math
import random
from fractions import Fraction

import sympy as sp

from refengine.exact.law import tv
from refengine.exact.row import Row, overlap, row


def kl(p: Row, q: Row) -> float:
    """KL(p || q) in nats."""
    return sum(float(x) * math.log(float(x) / float(y)) for x, y in zip(p, q, strict=True) if x)


def distance(p: Row, q: Row) -> Fraction:
    return Fraction(tv(dict(enumerate(p)), dict(enumerate(q))))


def test_pinsker_holds_for_rows_and_its_constant_is_the_best() -> None:
    """2 TV^2 <= KL, and no number above 2 would do. Kills a Pinsker with another constant.

    2000 random rows with zeros, V up to 50, exact TV against float64 KL; 1e-12 covers 50 roundings of terms below 20.
    Of (1/2 + d, 1/2 - d) and (1/2, 1/2) KL is 2 d^2 + 4 d^4 / 3 + ..., and TV is d.
    """
    source = random.Random(3)
    for _ in range(2000):
        size = source.randint(2, 50)
        p, q = (row([source.randint(lowest, 10**6) for _ in range(size)]) for lowest in (0, 1))
        assert 2 * float(distance(p, q)) ** 2 <= kl(p, q) + 1e-12
    half, d = row([1, 1]), Fraction(1, 100)
    assert kl((half[0] + d, half[1] - d), half) < 2.001 * float(d) ** 2


def test_acceptance_is_one_minus_tv() -> None:
    """sum min(p, q) = 1 - TV exactly, zeros included. Kills a TV without the 1/2."""
    source = random.Random(4)
    for _ in range(300):
        size = source.randint(2, 9)
        p, q = (row([source.randint(0, 5) for _ in range(size - 1)] + [1]) for _ in range(2))
        assert overlap(p, q) == 1 - distance(p, q)


def test_lower_kl_is_not_higher_acceptance() -> None:
    """p = (.1, .9): q = (.03, .97) has the larger KL(p||q) and the larger acceptance, against q = (.2, .8).

    Acceptances 93/100 and 90/100 exactly; the KLs, in closed form, differ by more than 0.01. Kills the claim that every
    improvement of KL provably raises acceptance.
    """
    p, near, far = row([10, 90]), row([20, 80]), row([3, 97])
    assert (overlap(p, near), overlap(p, far)) == (Fraction(90, 100), Fraction(93, 100))
    tenth, nine = sp.Rational(1, 10), sp.Rational(9, 10)
    gap = tenth * sp.log(sp.Rational(20, 3)) + nine * sp.log(sp.Rational(80, 97))  # KL(p || far) - KL(p || near)
    assert gap.evalf(30) > sp.Rational(1, 100)
    assert abs(float(gap) - (kl(p, far) - kl(p, near))) < 1e-12


def test_pinsker_bounds_acceptance_from_below_only() -> None:
    """What KL does give: acceptance >= 1 - sqrt(KL / 2), and KL = 0 iff acceptance = 1; nothing pointwise in between.

    A KL without bound is compatible with acceptance near 1: p = (1/n, 1 - 1/n), q = (n^-n, rest).
    """
    for n in (10, 100, 1000):
        p = row([1, n - 1])
        q = (Fraction(1, n**n), 1 - Fraction(1, n**n))
        assert overlap(p, q) > 1 - Fraction(1, n)
        log_ratio = (n - 1) * math.log(n)  # KL >= (1/n) log(n^(n-1)) - log 2
        assert log_ratio / n - math.log(2) > math.log(n) / 2 - math.log(2)
    assert overlap(p, p) == 1
