"""The runs of a merged law: how many there are, what they refuse, and what is done to a token that nobody looks at."""

import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from refengine.exact import merged, unknowns
from refengine.exact.law import law as walked
from refengine.exact.row import residual
from refengine.exact.rules import RULES
from refengine.exact.tables import tables

HALF = (Fraction(1, 2), Fraction(1, 2))
COIN, SECOND = ("accept", 0), ("accept", 1)
same = unknowns.table(lambda prefix: (Fraction(prefix[-1] == 0), Fraction(prefix[-1] == 1)))


def half_refused(weights: tuple[Any, Any]) -> Callable[[Any], Any]:
    """A program that draws from `weights`; there is no row after a 0."""
    after = unknowns.table(lambda prefix: (0, 0) if prefix == (0,) else weights)

    def program(chance: Any) -> Any:
        first = chance.choose(weights, ("emit", 0))
        return (first, chance.choose(after((first,)), ("emit", 1)))

    return program


def counted(program: Callable[[Any], Any]) -> int:
    """How many runs a program takes, whose law is that of the walk."""
    runs: list[int] = []
    assert merged.law(program, runs) == walked(program)
    assert len(runs) == 1
    return runs[0]


@pytest.mark.parametrize(("num", "den", "runs"), [(1, 2, 2), (1, 1, 1), (3, 2, 1), (0, 1, 1), (0, 0, 1)])
def test_a_coin_splits_where_it_can_fall_both_ways(num: int, den: int, runs: int) -> None:
    """Kills: a run for what a coin cannot say, with which a loop until acceptance never ends; odds of 0 : 0 that
    accept or divide; runs counted wrongly."""
    assert counted(lambda chance: (int(chance.accept(num, den, COIN)),)) == runs


def test_a_look_splits_where_there_is_mass() -> None:
    """Kills: a run for a value that the token cannot have after the coins before; one for a coin that is sure in every
    case."""

    def program(chance: Any) -> Any:
        x = chance.choose(HALF, ("draft", 0))
        kept = chance.accept(same((x,))[0], 1, COIN)
        return (int(kept), int(x == 0), int(chance.accept(x + 1, 1, SECOND)))

    assert counted(program) == 2


def test_a_finished_history_is_not_played_on() -> None:
    """Kills: another round after as many tokens as the law is of."""
    target, draft = tables("generic", 2, 3)
    runs: list[int] = []
    merged.Rounds(target, draft, "sampled_chain", 2, RULES["leviathan"].rule, memory=1).law((0,), 3, 1, runs)
    assert len(runs) == 1


def test_axes_are_summed_away_where_the_sum_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: the axis that twelve factors share summed away first, in a product of 2^13 cells."""
    sizes, product = [0], merged.product

    def watched(parts: Any) -> Any:
        axes, cells = product(parts)
        sizes.append(len(cells))
        return axes, cells

    monkeypatch.setattr(merged, "product", watched)
    star = merged.Factors([((0, leaf), {(a, b): 1 for a in range(2) for b in range(2)}) for leaf in range(1, 13)])
    assert star.onto(()) == {(): 2**13}
    assert max(sizes) <= 4


# --- refusals --------------------------------------------------------------------------------------------------------


def refuses(chance: Any) -> Any:
    chance.accept(1, 2, COIN)
    raise ValueError("the rule has no answer of its own")


def without_a_case(chance: Any) -> Any:
    return (int(chance.accept(chance.choose(HALF, ("draft", 0)) / 0, 1, COIN)),)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (refuses, "the rule has no answer of its own"),
        (without_a_case, "no answer where there is probability 1$"),
        (lambda chance: (int(chance.accept(-1, 2, COIN)),), "odds -1 : 2 are negative"),
        (half_refused((Fraction(1, 10**12), 1 - Fraction(1, 10**12))), "no answer where there is probability 1e-12"),
        (half_refused((0.5, 0.5)), "no answer where there is probability 0.5"),
    ],
)
def test_a_refusal_says_why(program: Callable[[Any], Any], message: str) -> None:
    """Kills: a refusal of the program or of its odds that is passed over; missing mass that is forgiven, of Fractions
    however little, of floats more than rounding; a coin without a case that ends otherwise than by missing mass."""
    with pytest.raises(ValueError, match=message):
        merged.law(program)


def test_what_no_path_reaches_is_not_refused() -> None:
    """Kills: a refusal in a run without probability, that of two coins each of which another token would pass."""

    def program(chance: Any) -> Any:
        x = chance.choose(HALF, ("draft", 0))
        if chance.accept(same((x,))[0], 1, COIN) and chance.accept(same((x,))[1], 1, SECOND):
            raise ValueError("no path comes here")
        return (x,)

    assert merged.law(program) == walked(program)


def test_floats_may_miss_one_by_rounding() -> None:
    """Kills: float64 weights held to the sum of Fractions."""
    found = merged.law(lambda chance: (chance.choose((1.0,) * 49, ("emit", 0)),))
    assert 0 < abs(1 - sum(found.values())) < 1e-15


# --- unknown tokens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne"])
def test_an_operator_does_in_every_case_what_it_does_to_ints(sign: str) -> None:
    """Kills: an operator that is another one, on a tie too, or that swaps its sides; one that fails on the right."""
    of = getattr(operator, sign)

    def program(chance: Any) -> Any:
        x, y = (chance.choose((1, 2, 3), ("draft", i)) for i in range(2))
        return (of(x, y), of(x, 1), of(1, x))

    assert merged.law(program) == walked(program)


def test_rows_are_computed_of_tokens_that_can_be_and_when_they_are_read() -> None:
    """Kills: a table asked for the row after a token of no probability, or for a row that nobody reads."""
    seen = set()

    def row_after(prefix: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        seen.add(prefix)
        return HALF

    after = unknowns.table(row_after)

    def program(chance: Any) -> Any:
        first = chance.choose((0, 1, 2), ("emit", 0))
        row, _ = after((first,)), after((first, 0))
        return (first, chance.choose(row, ("emit", 1)))

    merged.law(program)
    assert seen == {(1,), (2,)}


def test_a_prefix_shorter_than_the_memory_is_seen_whole() -> None:
    """Kills: a window that counts from the end where there is nothing left to cut."""
    seen = [unknowns.recent((0, 1, 2), memory) for memory in (0, 1, 2, 3, 4, 5, 9, None)]
    assert seen == [(), (2,), (1, 2), *[(0, 1, 2)] * 5]


def test_a_known_row_does_not_make_a_token_known() -> None:
    """Kills: a split by the token whose entry is read, in a row that the arithmetic made of known numbers."""
    rest = unknowns.case_by_case(residual)

    def program(chance: Any) -> Any:
        x = chance.choose(HALF, ("draft", 0))
        return (int(chance.accept(rest((2, 1), (0, 0))[x], 2, COIN)),)

    assert counted(program) == 2


def by_default(x: int, *, more: int = 2) -> int:
    return x + more


def test_an_opened_function_keeps_its_defaults() -> None:
    """Kills: keyword-only defaults that are lost when a function is opened to unknown tokens."""
    assert unknowns.opened(sys.modules[__name__])["by_default"](1) == 3
