"""The survival-product scheduler of DSpark, by hand, and what it is told."""

import math
from typing import Any

import pytest

from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.dspark_schedule import Load, Threshold
from refengine.decoder.loop import generate
from refengine.engine.policy import pipeline
from refengine.engine.rules.leviathan import leviathan
from refengine.source_tree import FIXTURES

CURVE = ((1, 1.0), (2, 1.0), (4, 2.0))


def drafted(load: Load | Threshold, confidences: tuple[float, ...]) -> int:
    """How many positions are drafted before the first that is not."""
    admitted = [load(confidences[: k + 1]) for k in range(len(confidences))]
    return [*admitted, False].index(False)


@pytest.mark.parametrize("least", [0.25, 0.5, 1.0])
def test_a_threshold_is_the_least_that_is_drafted(least: float) -> None:
    """Kills `>` for `>=`: half precision, and a sigmoid that is full, hit a threshold exactly."""
    below = math.nextafter(least, 0.0)
    assert drafted(Threshold(least), (least, least, below, least)) == 2


def test_the_curve_is_read_between_and_beyond_its_points() -> None:
    """Kills a step in the place of a line, and a pass before the first or beyond the last point that costs as much."""
    assert [Load(CURVE).seconds(rows) for rows in (1, 2, 3, 4, 6)] == [1.0, 1.0, 1.5, 2.0, 3.0]
    assert [Load(((4, 2.0), (8, 3.0))).seconds(rows) for rows in (2, 4, 12)] == [1.5, 2.0, 4.0]


def test_speed_sums_the_products() -> None:
    """Kills confidences that are added up unmultiplied, a forgotten bonus, rows of others that are not in the pass."""
    load = Load(CURVE, rows=1, tokens=2.0)
    assert load.speed((0.5, 0.5)) == (2 + 1 + 0.5 + 0.25) / load.seconds(1 + 1 + 2)
    assert load.speed(()) == 3.0


def test_a_block_ends_where_going_on_does_not_pay() -> None:
    """Kills the best length over the whole block, which looks past the tokens that it drops: here that is 3."""
    uneven = Load(((1, 1.0), (2, 1.0), (3, 2.0), (4, 1.0)))
    assert drafted(uneven, (0.9, 0.8, 1.0)) == 1
    assert max(range(4), key=lambda n: uneven.speed((0.9, 0.8, 1.0)[:n])) == 3
    assert drafted(Threshold(0.7), (0.9, 0.6, 1.0)) == 1


def test_a_busy_server_verifies_less() -> None:
    """Kills a load that plays no part: the same confidences alone, and in a batch that has filled the machine."""
    flat_then_steep = ((1, 1.0), (16, 1.0), (32, 2.0))
    confidences = (0.9, 0.7, 0.5, 0.3)
    assert [drafted(Load(flat_then_steep, rows, rows / 2), confidences) for rows in (0, 10, 14, 24)] == [4, 4, 2, 2]


@pytest.mark.parametrize("curve", [(), ((1, 1.0),), ((2, 1.0), (1, 2.0)), ((1, 0.0), (2, 1.0))])
def test_what_is_no_curve_is_refused(curve: tuple[tuple[int, float], ...]) -> None:
    """Kills a division by zero, and points out of order that are read as a line."""
    with pytest.raises(ValueError, match="a load curve is two or more points"):
        Load(curve)


def test_a_head_that_is_off_is_one_of_weight_zero() -> None:
    """Kills a confidence that, without the Markov bias, looks at another token than the one before."""
    target = load_target(FIXTURES / "tiny" / "target")

    def drafts(markov: bool) -> tuple[list[float], object]:
        drafter: Any = load_drafter(FIXTURES / "tiny" / "dspark", target, threshold=0.5, markov=markov)
        if markov:
            drafter.w.tensors["markov_head.markov_w2.weight"].zero_()
        told: list[float] = []
        drafter.cut = lambda confidences: told.append(confidences[-1]) or True
        return told, generate(target, drafter, leviathan, pipeline(), (0, 1, 2, 3), 12, COINS).tokens

    off, zero = drafts(markov=False), drafts(markov=True)
    assert off == zero
    assert len(set(off[0])) > 8
