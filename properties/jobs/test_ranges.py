"""Counter ranges and sums: no coin is thrown twice, and it does not matter how counts are added up."""

from itertools import pairwise
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refengine.engine.coins import Philox
from refengine.jobs.campaign import merged
from refengine.jobs.ranges import REQUESTS, Range, batches, coins, split

COUNTS = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 1 << 70), min_size=3, max_size=3), max_size=3)
NEAR = st.builds(lambda keys, off: max(0, keys * REQUESTS + off), st.integers(0, 9), st.integers(-2000, 2000))
WHOLE = st.builds(Range, NEAR, st.integers(0, 5000))


@settings(deadline=None)
@given(WHOLE, st.integers(1, 3000), st.integers(1, 700))
def test_shards_and_batches_tile_the_counter(whole: Range, size: int, most: int) -> None:
    """Kills a lane that is drawn twice, by two shards or two batches, one that nobody draws, and a batch under two
    keys."""
    pieces = [batch for shard in split(whole, size) for batch in batches(shard, most)]
    assert all(0 < piece.count <= most for piece in pieces)
    assert all(before.end == after.first for before, after in pairwise(pieces))
    assert sum(piece.count for piece in pieces) == whole.count
    assert not pieces or (pieces[0].first, pieces[-1].end) == (whole.first, whole.end)
    assert all(piece.first // REQUESTS == (piece.end - 1) // REQUESTS for piece in pieces)


@settings(deadline=None)
@given(WHOLE, st.integers(0, REQUESTS - 1), st.integers(20, 700))
def test_every_lane_has_a_key_and_a_request_of_its_own(whole: Range, seed: int, most: int) -> None:
    """Kills two lanes, or two seeds, with the same coins."""
    seen = []
    for batch in batches(whole, most):
        found = coins(seed, batch)
        key, own = divmod(found.seed, REQUESTS)
        assert own == seed
        seen += [key * REQUESTS + request for request in found.requests.tolist()]
    assert seen == list(range(whole.first, whole.end))


def test_small_campaigns_are_plain_philox() -> None:
    """Kills a campaign whose lanes cannot be made again without it."""
    row = torch.ones(5, 100)
    ours, plain = coins(7, Range(40, 5)), Philox(7, torch.arange(40, 45))
    assert torch.equal(ours.choose(row, ("emit", 0)), plain.choose(row, ("emit", 0)))


def test_a_batch_under_two_keys_and_a_large_seed_are_refused() -> None:
    """Kills requests that wrap round into coins that were thrown."""
    with pytest.raises(ValueError, match="under two keys"):
        coins(0, Range(REQUESTS - 1, 2))
    with pytest.raises(ValueError, match="lie in"):
        coins(REQUESTS, Range(0, 1))


@given(st.lists(COUNTS, max_size=6), st.randoms(use_true_random=False))
def test_counts_add_up_in_any_order_and_grouping(shards: list[dict[str, list[int]]], source: Random) -> None:
    """Kills a sum that depends on who was first or on who added up before, and one that overflows."""
    at = source.randint(0, len(shards))
    shuffled = source.sample(shards, len(shards))
    grouped = merged([merged(shuffled[:at]), merged(shuffled[at:])])
    assert grouped == merged(shards)
    assert list(grouped) == sorted(grouped)


def test_counts_of_other_outcomes_are_refused() -> None:
    """Kills a sum that is cut to the shorter."""
    with pytest.raises(ValueError, match="'a' has 2 counts in one shard and 1 in another"):
        merged([{"a": [1]}, {"a": [1, 2]}])
