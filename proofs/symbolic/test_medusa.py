"""Typical acceptance as the seed states it, with the project's own rule: `refengine.exact.rules.typical`."""

from fractions import Fraction
from functools import partial
from random import Random

import pytest

from refengine.exact.block import Block, Drafter, Rule
from refengine.exact.drafters import fixed, sampled_chain
from refengine.exact.law import losslessness, round_law, target_law
from refengine.exact.policy import pipeline, temperature, top_k, top_p
from refengine.exact.row import Row, argmax, point, row
from refengine.exact.rules.nucleus import nucleus
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.typical import typical, typical_inclusive

Tokens = tuple[int, ...]
P1, AFTER_A = row([6, 4]), row([51, 49])
nothing = fixed(lambda prefix: ((), ()))
the_branch = fixed(lambda prefix: ((0, 0), (-1, 0)))  # the one candidate (a, u)


def target(prefix: Tokens) -> Row:
    return P1 if not prefix else AFTER_A if prefix[-1] == 0 else row([1, 1])


def difference(drafter: Drafter, rule: Rule, length: int) -> Fraction:
    return Fraction(losslessness(target, drafter, rule, (), length))


def test_forced_first_token() -> None:
    """P = (.6, .4): the first token is argmax P always, TV = .4 = 1 - max P. Kills a typical rule that draws it."""
    assert difference(nothing, typical, 1) == Fraction(2, 5)


def test_one_accepted_branch() -> None:
    """alpha = .6, beta = .51: (a, u) with probability 1, TV of the pair = 1 - .6 * .51 = .694 exactly."""
    assert round_law(target, the_branch, typical, ()).keys() == {(0, 0, 0)}
    assert difference(the_branch, typical, 2) == Fraction(694, 1000)


def test_exact_tv_under_a_policy() -> None:
    """TV = 1 - pi[P](a), with equality, for the policy's own row; top-k = 1 and top-p <= max P make it 0.

    Kills "lossy for any stochastic policy (temperature, top-p, top-k)": those two are stochastic policies whose law is
    a point mass at the argmax, and the forced token is then right.
    """
    for policy, expected in [
        (pipeline(), Fraction(2, 5)),
        (pipeline(top_k(2)), Fraction(2, 5)),
        (pipeline(top_k(1)), Fraction(0)),
        (pipeline(top_p(Fraction(1, 2))), Fraction(0)),
    ]:
        law = Fraction(losslessness(lambda h, pi=policy: pi(P1, (), h), nothing, typical, (), 1))
        assert law == expected == 1 - policy(P1, (), ())[0]


SQUARES = row([9, 25, 4, 16])  # so that its root, temperature 2, is rational too
POLICIES = {
    "temperature 2": lambda p, prompt, prefix: row([3, 5, 2, 4]),
    **{f"temperature 1/{n}": pipeline(temperature(n)) for n in (1, 2, 3)},
    **{f"top-p {p}": pipeline(top_p(Fraction(p))) for p in ("1/4", "1/2", "4/5", "1")},
    "both": pipeline(temperature(2), top_p(Fraction(9, 10))),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_token_is_the_argmax_at_every_temperature_and_threshold(policy: str) -> None:
    """The released rule on the rows of nine policies: with no candidate, with one or two that are the argmax, and with
    candidates none of which passes, the first token is token 1, and its law is off by 1 - pi[P](1).

    Kills a first token that is drawn, or that is the likeliest of another row than the policy's, and a candidate that
    is emitted without passing.
    """
    pi = POLICIES[policy](SQUARES, (), ())
    refusing = partial(typical, epsilon=1, delta=9)  # p > min(1, 9 exp(-H)) = 1 is never true
    for tree, rule in [
        (((), ()), typical),
        (((1,), (-1,)), typical),
        (((1, 1), (-1, -1)), typical),
        (((1, 1), (-1, -1)), refusing),
        (((0, 3, 2, 1), (-1, -1, -1, 0)), refusing),
    ]:
        drafter = fixed(lambda prefix, tree=tree: tree)
        (word,) = round_law(lambda h: pi, drafter, rule, ())
        assert word[0] == 1 == argmax(SQUARES)
        assert losslessness(lambda h: pi, drafter, rule, (), 1) == 1 - pi[1]


def test_thresholds_need_not_skew() -> None:
    """If the candidate is drawn from P and every candidate passes, its law *is* P, which is not degenerate.

    Kills "the marginal of the emitted tokens cannot equal P unless P is degenerate": what skews is the pair of proposal
    and threshold. Here epsilon = 1/1000 is below every probability, so the threshold passes all.
    """
    lenient = partial(typical_inclusive, epsilon=0.001)
    assert difference(sampled_chain(target, 1), lenient, 1) == 0
    assert difference(sampled_chain(target, 2), lenient, 2) == 0
    assert difference(sampled_chain(target, 1), lenient, 2) > 0  # the token after it is again the argmax


def test_a_passing_threshold_makes_the_emitted_law_the_draft() -> None:
    """With an other q the emitted law is q, TV(p, q) exactly: no correction is applied."""
    lenient = partial(typical_inclusive, epsilon=0.001)
    q = row([1, 3])
    assert difference(sampled_chain(lambda prefix: q, 1), lenient, 1) == Fraction(35, 100)  # |.6 - .25|


@pytest.mark.parametrize("seed", range(20))
def test_candidates_that_are_not_drawn_come_out_as_one_word(seed: int) -> None:
    """Any tree that is a function of the context, any rows: one word for certain, so TV = 1 - P(word), and TV is 0 only
    where P gives that word everything. Kills a typical rule that draws, and an emitted law that could be P.
    """
    source = Random(seed)
    count = source.randint(1, 5)
    tree = [source.randrange(3) for _ in range(count)], [source.randrange(-1, j) for j in range(count)]
    certain = seed % 4 == 0  # a P that is a Dirac after every prefix

    def rows(prefix: Tokens) -> Row:
        weights = [Random(f"{seed} {prefix} {x}").randint(1, 9) for x in range(3)]
        return point(argmax(row(weights)), 3) if certain else row(weights)

    for rule in (typical, typical_inclusive):
        (word,) = round_law(rows, fixed(lambda prefix: tree), rule, ())
        mass = Fraction(target_law(rows, (), len(word))[word])
        away = losslessness(rows, fixed(lambda prefix: tree), rule, (), len(word))
        assert away == 1 - mass
        assert (away == 0) == certain


def test_bound_is_not_strict_for_every_first_row() -> None:
    """TV of the pair >= 1 - max P1, claimed strict unless P1 is a Dirac: equality at alpha = .6, beta = 1."""
    law = Fraction(losslessness(lambda h: row([6, 4]) if not h else row([1, 0]), the_branch, typical, (), 2))
    assert law == Fraction(2, 5) == 1 - max(P1)


def test_released_threshold_is_strict() -> None:
    """Medusa's code accepts iff p > min(eps, delta exp(-H)), the text says >=: they differ on the threshold.

    p = (7/8, 1/8), eps = 1/8 (delta exp(-H) is .21 there): the text accepts token 1, the code does not.
    """
    rows = [row([7, 1]), row([1, 0])]
    candidate = Block((1,), (-1,), (None,), (None,))
    assert typical_inclusive(rows, candidate, None, epsilon=0.125).tokens == (1, 0)  # type: ignore[arg-type]
    assert typical(rows, candidate, None, epsilon=0.125).tokens == (0,)  # type: ignore[arg-type]


def test_released_nucleus_mode_is_lossy() -> None:
    """Medusa's third mode samples, and still is not lossless; rejection sampling on the same candidate is.

    P = (.5, .3, .2), candidate 0, nothing filtered: token 0 comes out with p (2 - p) = 3/4. Kills a list of two modes.
    """
    rows = row([5, 3, 2])
    one = fixed(lambda prefix: ((0,), (-1,)))
    everything = partial(nucleus, top_p=Fraction(1))
    emitted = round_law(lambda h: rows, one, everything, ())
    assert sum((mass for tokens, mass in emitted.items() if tokens[0] == 0), Fraction(0)) == Fraction(3, 4)
    assert losslessness(lambda h: rows, one, everything, (), 1) == Fraction(1, 4)
    assert losslessness(lambda h: rows, one, point_mass, (), 2) == 0
