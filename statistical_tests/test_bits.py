"""The bitwise mode and the batched loop at length. Nothing is sampled against a law here: one exception is a defect.

Ten thousand histories of every drafter in float32 and in bfloat16, ten thousand schedules and more, are on record
(`refengine.selfcheck.drafters.committed_bits`): they take hours. Here the beginning of one shard of each is run again,
drawn by the commit's id; `-m "stat and long"` runs the whole shard.
"""

import random

import pytest
import torch

from properties.helpers.histories import World, model, wander
from refengine.selfcheck.drafters.bits import Alone
from refengine.selfcheck.drafters.committed_bits import COMMAND, RECORD, SHARD, SHARDS, shard
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import commit_seed
from statistical_tests.budget import SCALES

pytestmark = pytest.mark.stat

DTYPES = [torch.float32, torch.bfloat16]
AGAIN = 40  # histories: five seconds of each
WHOLE = [pytest.param(AGAIN, id="beginning"), pytest.param(SHARD, id="whole", marks=pytest.mark.long)]


@pytest.mark.parametrize("histories", WHOLE)
@pytest.mark.parametrize("dtype", SHARDS)
@pytest.mark.parametrize("name", ROWS)
def test_histories_of_a_drafter(name: str, dtype: str, histories: int) -> None:
    """Bug: bits that depend on how a text was reached, in whatever company; a request that says something else."""
    number = commit_seed() % SHARDS[dtype]
    counted, _, wrong = shard(name, dtype, number, histories)
    again = f"run {COMMAND} --shard {name} '{dtype}' {number}"
    assert wrong == [], again
    assert counted["rounds"] > histories / 2


def test_what_is_on_record_is_without_exception() -> None:
    """Bug: a committed exception that nobody looks at."""
    wrong = [f"{key}: {entry['first']}" for key, entry in RECORD.entries().items() if entry["otherwise"]]
    assert wrong == []
    assert all(entry["histories"] >= SHARD for entry in RECORD.entries().values())


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
