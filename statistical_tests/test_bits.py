"""The bitwise mode and the batched loop at length. Nothing is sampled against a law here: one exception is a defect.

Small numbers in the ten-minute version; `-m "stat and long"` has ten thousand schedules, and of every drafter ten
thousand histories: a history is the way in which one row came to be computed.
"""

import random

import pytest
import torch

from properties.helpers.histories import World, model, wander
from properties.helpers.schedules import Company
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import Session
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules import RULES
from refengine.selfcheck.drafters.bits import Alone, Heard, Listened
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES
from statistical_tests.budget import SCALES

pytestmark = pytest.mark.stat

DTYPES = [torch.float32, torch.bfloat16]
SCHEDULES = HISTORIES = 200
FIFTYFOLD = [pytest.param(1, id="once"), pytest.param(50, id="fiftyfold", marks=pytest.mark.long)]


@pytest.mark.parametrize("times", FIFTYFOLD)
@pytest.mark.parametrize("slots", [None, 32], ids=["float64", "bitwise float32"])
def test_schedules(slots: int | None, times: int) -> None:
    """Bug: a request that says something else in company."""
    company, source = Company("dspark", torch.float32 if slots else torch.float64, slots), random.Random(11)
    assert [wrong for _ in range(SCHEDULES * times) for wrong in company.play(source, total=3)] == []
    assert company.heard.differing == []


@pytest.mark.parametrize("times", FIFTYFOLD)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_histories_of_a_drafter(name: str, dtype: torch.dtype, times: int) -> None:
    """Bug: bits that depend on how a text was reached: alone, or under a drafter's blocks, accepts and rejects."""
    row, source = ROWS[name], random.Random(12)
    target = load_target(FIXTURES / row.target, dtype, slots=96)
    heard = Heard(Alone(load_target(FIXTURES / row.target, dtype, slots=96)))
    judge = Listened(target, heard)
    session = Session(judge, row.load(judge), RULES[row.rules[0]], pipeline(temperature(0.8)), 40)
    while heard.compared < HISTORIES * times:
        prompt = tuple(source.randrange(6) for _ in range(source.randint(1, 3)))
        coins = Philox(source.randrange(2**32), torch.tensor([0]))
        session.begin(prompt, coins)
        while not session.done:
            session.play(coins)
    assert heard.differing == []


@pytest.mark.parametrize("times", SCALES)
@pytest.mark.parametrize("kind", ["dense", "experts"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_histories_of_requests_that_share_passes(kind: str, dtype: torch.dtype, times: int) -> None:
    """Bug: a lane, a slot or a shape that is felt in one history of a thousand."""
    world = World(model(kind, dtype))
    for seed in range(5 * times):
        world.requests = []
        wander(world, random.Random(seed), 100)
        world.heard.wanted = Alone(world.heard.wanted.target)  # type: ignore[union-attr]  # what it knew would not fit
    assert world.heard.differing == []
