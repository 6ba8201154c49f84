"""Interception: the law of torch programs, however they spell their randomness."""

import ctypes
import math
import random
from fractions import Fraction

import numpy as np
import pytest
import torch

from refengine.audit.interception.gumbel_race import SHARE_TOLERANCE
from refengine.audit.interception.intercept import Raised, Unmodelled, intercepted
from refengine.exact.chance import Replay, runs
from refengine.exact.law import law, tv

P = torch.tensor([0.25, 0.5, 0.125, 0.125, 0.0])
EXACT = {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 8), 3: Fraction(1, 8)}
GRID = Fraction(1, 1 << 24)


def race_in_place() -> int:
    noise = torch.empty_like(P).exponential_(1)
    return int(P.clone().div_(noise).argmax(-1))


DRAWS = {
    "multinomial": lambda: int(torch.multinomial(P, 1)),
    "multinomial, own generator": lambda: int(torch.multinomial(P, 1, generator=torch.Generator())),
    "Categorical": lambda: int(torch.distributions.Categorical(P).sample()),
    "inverse cdf by comparison": lambda: int((torch.rand(1) >= P.cumsum(0)).sum()),
    "inverse cdf by search": lambda: int(torch.searchsorted(P.cumsum(0), torch.rand(1), right=True)),
    "inverse cdf, item": lambda: int((torch.rand(2)[1].item() >= P.cumsum(0)).sum()),
    "random.random": lambda: (lambda u: sum(bool(u >= c) for c in P.cumsum(0).tolist()))(random.random()),
    "exponential race": lambda: int((P / torch.empty(5).exponential_()).argmax()),
    "exponential race, in place": race_in_place,
    "Gumbel noise": lambda: int((P.log() - torch.log(-torch.log(torch.rand(5)))).argmax()),
    "argmin of a race": lambda: int((torch.empty(5).exponential_() / P).argmin()),
    "race by reciprocals": lambda: int((P * torch.empty(5).exponential_().reciprocal()).argmax()),
    "race of those with mass": lambda: int(torch.where(P > 0, torch.empty(5).exponential_() / P, math.inf).argmin()),
}


@pytest.mark.parametrize("name", DRAWS)
def test_every_way_of_drawing_from_a_row_has_the_law_of_the_row(name: str) -> None:
    """Kills an interception that knows one spelling only. A race's weights are known to 1e-6, the rest exactly."""
    assert tv(law(intercepted(DRAWS[name])), EXACT) < (1e-6 if "race" in name or "Gumbel" in name else 1e-12)


@pytest.mark.parametrize(
    ("compare", "probability"),
    [
        (lambda u: u < 0.25, Fraction(1, 4)),
        (lambda u: u <= 0.25, Fraction(1, 4) + GRID),
        (lambda u: u <= 0.0, GRID),
        (lambda u: u < 0.0, Fraction(0)),
        (lambda u: torch.tensor(0.25) > u, Fraction(1, 4)),
        (lambda u: u * 0.5 < 0.125, Fraction(1, 4)),
        (lambda u: 1 - u > 0.75, Fraction(1, 4)),
        (lambda u: u.log() < math.log(0.25), Fraction(1, 4)),
        (lambda u: u == 0.5, GRID),
        (lambda u: (u * 4).long() == 3, Fraction(1, 4)),
        (lambda u: u < float("nan"), Fraction(0)),
    ],
)
def test_a_coin_is_the_number_of_grid_points_below_it(compare, probability: Fraction) -> None:
    """Kills `<` taken for `<=`: they differ by one point of 2^24, which is a token of probability zero accepted."""
    observed = law(intercepted(lambda: bool(compare(torch.rand(())))))
    assert abs(observed.get(True, 0) - probability) <= (GRID if probability in (Fraction(1, 4),) else 0) / 2


LIGHT = torch.tensor([0.5, 0.499195, 5.5e-4, 2e-4, 5e-5, 5e-6])


@pytest.mark.parametrize(
    "pick",
    [
        lambda: (LIGHT.log() - torch.log(-torch.log(torch.rand(6)))).argmax(),
        lambda: (LIGHT / torch.empty(6).exponential_()).argmax(),
        lambda: torch.where(LIGHT > 0, torch.empty(6, dtype=torch.float64).exponential_() / LIGHT, math.inf).argmin(),
    ],
)
def test_a_race_with_light_entries_is_still_one(pick) -> None:
    """Kills a correct subject that is only sampled, because what a light entry needs to win is hard to say in digits:
    the cut of its tail would go unseen. Within the share to which a race is known."""
    wanted = {i: Fraction(w) / Fraction(sum(LIGHT.tolist())) for i, w in enumerate(LIGHT.tolist())}
    assert tv(law(intercepted(lambda: int(pick()))), wanted) < SHARE_TOLERANCE


def test_a_coarse_race_has_its_own_law_ties_and_all() -> None:
    """Kills a race in half precision that is refused, or whose ties are taken to be broken by chance. 2^22 pairs of
    half-precision uniforms, counted one by one."""
    weights = torch.tensor([0.3, 0.7])

    def noise(u: torch.Tensor) -> torch.Tensor:
        return (weights.log() - torch.log(-torch.log(u.float()))).half()

    u = torch.arange(2048).half() / 2048
    x = noise(torch.stack([u, u], dim=1))
    first = sum(int((x[:, 0] >= other).sum()) for other in x[:, 1])
    observed = law(intercepted(lambda: int(noise(torch.rand(2, dtype=torch.float16)).argmax())))
    assert float(observed[0]) == pytest.approx(first / 2048**2, abs=1e-12)
    assert abs(first / 2048**2 - 0.3) > 5e-5


def test_few_values_are_no_exponential_race() -> None:
    """Kills a sum that is rounded last: its levels are those of a race, and within a level the lowest id wins."""
    observed = law(intercepted(lambda: int((P.log() - torch.log(-torch.log(torch.rand(5)))).bfloat16().argmax())))
    assert tv(observed, EXACT) > 1e-4
    assert observed[0] + observed[1] > EXACT[0] + EXACT[1]
    assert 4 not in observed


def test_one_uniform_stays_one_uniform() -> None:
    """Kills a second comparison of the same number that throws a fresh coin."""

    def twice() -> tuple[bool, bool]:
        u = torch.rand(1)
        return bool(u < 0.5), bool(u.reshape(()) < 0.25)

    assert law(intercepted(twice)) == {
        (True, True): Fraction(1, 4), (True, False): Fraction(1, 4), (False, False): Fraction(1, 2)
    }  # fmt: skip


def test_a_flip_and_an_integer() -> None:
    """Kills bernoulli and randint read from the wrong argument."""
    odds = torch.tensor([0.25, 1.0, 0.0])
    assert law(intercepted(lambda: tuple(torch.bernoulli(odds).tolist()))) == {
        (1.0, 1.0, 0.0): Fraction(1, 4), (0.0, 1.0, 0.0): Fraction(3, 4)
    }  # fmt: skip
    assert law(intercepted(lambda: int(torch.randint(2, 5, ())))) == dict.fromkeys((2, 3, 4), Fraction(1, 3))


def test_draws_without_replacement() -> None:
    """Kills a second column drawn from the full row again."""
    pairs = law(intercepted(lambda: tuple(torch.multinomial(torch.tensor([0.5, 0.25, 0.25]), 2).tolist())))
    assert pairs[0, 1] == Fraction(1, 4)
    assert pairs[1, 0] == Fraction(1, 6)
    assert (0, 0) not in pairs


UNFOLLOWED = {
    "a normal": lambda: bool(torch.randn(1) > 0),
    "two uniforms compared": lambda: bool(torch.rand(1) < torch.rand(1)),
    "not monotone": lambda: bool((lambda u: u * (1 - u))(torch.rand(1)) < 0.1),
    "a sign change in a divisor": lambda: bool(1 / (torch.rand(1) - 0.5) < 1),
    "a Python float": lambda: float(torch.rand(1)) < 0.5,
    "Python's own generator": lambda: random.choice([1, 2]),
    "numpy": lambda: bool(np.random.rand() < 0.5),
    "a read of memory": lambda: ctypes.c_float.from_address(torch.rand(1).data_ptr()).value < 0.5,
    "a sign change in a reciprocal": lambda: bool((torch.rand(1) - 0.5).reciprocal() < 1),
    "a seed": lambda: int(torch.randint(2**31, ())),
    "a race with a constant in it": lambda: int(torch.cat([torch.rand(2).log(), torch.tensor([-0.5])]).argmax()),
    "a race of the wrong law": lambda: int((P[:2] + torch.rand(2)).argmax()),
}


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_what_cannot_be_followed_is_refused(name: str) -> None:
    """Kills a guess: a program that is not followed exactly has no exact law."""
    with pytest.raises(Unmodelled):
        law(intercepted(UNFOLLOWED[name]))


def test_a_refusal_that_the_program_swallows_is_still_a_refusal() -> None:
    """Kills a subject that hides the interception's error behind its own except clause."""

    def swallows() -> bool:
        try:
            return bool(torch.randn(1) > 0)
        except RuntimeError:
            return False

    with pytest.raises(Unmodelled):
        law(intercepted(swallows))


def test_an_exception_of_the_program_is_an_outcome() -> None:
    """Kills a crash on one branch that is lost, or that ends the whole enumeration."""

    def sometimes() -> int:
        if torch.rand(()) < 0.5:
            raise KeyError("gone")
        return 1

    assert law(intercepted(sometimes)) == {1: Fraction(1, 2), Raised("KeyError: 'gone'"): Fraction(1, 2)}


def test_a_run_replays() -> None:
    """Kills decisions that are recorded under sites which a second run does not ask for."""

    def program() -> tuple[bool, int]:
        return bool(torch.rand(1).item() < 0.3), int(torch.multinomial(P, 1))

    run = intercepted(program)
    for result, _, trace in runs(run):
        chance = Replay([(d.site, d.outcome) for d in trace])
        assert run(chance) == result
        chance.finish()
