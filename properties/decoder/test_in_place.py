"""The cache that is written in place: what it holds, and that nobody's view of kept rows ever changes."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from refengine.decoder.networks.cache import Cache
from refengine.decoder.targets.in_place import InPlaceCache

HOSTILE = 1e30  # written over everything that nobody may look at
LAYERS = 2


def rows(first: int, count: int) -> Cache:
    """Rows [1, 2, count, 3] of every layer, of which no two are equal: each holds its number, layer and part."""
    number = torch.arange(first, first + count, dtype=torch.float64)[None, None, :, None].expand(1, 2, count, 3)
    return tuple((number + layer / 4, number + layer / 4 + 1 / 8) for layer in range(LAYERS))


def numbers(found: Tensor) -> list[float]:
    assert found.shape[1:2] + found.shape[3:] == (2, 3)
    assert (found == found[:, :1, :, :1]).all()
    return [float(x) for x in found[0, 0, :, 0]]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
@torch.inference_mode()
def test_rows_stay_as_if_no_other_had_been_there(data: st.DataObject) -> None:
    """Kills a row that moves, a buffer that is grown without its rows, a gather that reads what it has just written,
    rows of the room that come back, and a view of kept rows that a later pass writes over."""
    cache, kept, made = InPlaceCache(), list[int](), 0
    views: list[tuple[Tensor, Tensor]] = []
    for _ in range(data.draw(st.integers(1, 8))):
        tentative: list[int] = []
        for count in data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)):
            cache.append(rows(made, count))
            tentative += range(made, made + count)
            made += count
            expected = kept + tentative
            for layer, (k, v) in enumerate(cache.pairs()):
                assert numbers(k) == [x + layer / 4 for x in expected]
                assert numbers(v) == [x + layer / 4 + 1 / 8 for x in expected]
        chosen = data.draw(st.one_of(
            st.integers(0, len(tentative)).map(range), st.lists(st.sampled_from(range(len(tentative))), unique=True),
        ))  # fmt: skip
        cache.keep(len(kept), chosen)
        kept += [tentative[row] for row in chosen]
        held_layers: list[Any] = cache.layers
        for held_layer in held_layers:
            for buffer in held_layer.room:
                buffer[:, :, len(kept) :] = HOSTILE
        views += [(held, held.clone()) for pair in cache.pairs() for held in pair]
        assert all(torch.equal(held, copy) for held, copy in views)
    assert [numbers(k) for k, _ in cache.pairs()] == [[x + layer / 4 for x in kept] for layer in range(LAYERS)]


@pytest.mark.parametrize("chosen", [[3], [0, 1, 2, 3], [-1], [1, 0, 4]])
def test_a_row_that_is_not_there_is_not_kept(chosen: list[int]) -> None:
    """Kills a cut that takes in rows of the room, which were taken back, and a number counted from the end."""
    cache = InPlaceCache()
    cache.append(rows(0, 5))
    cache.keep(0, range(2))
    cache.append(rows(5, 3))
    with pytest.raises(ValueError, match=r"cannot be kept of 3 tentative rows"):
        cache.keep(2, chosen)
    assert [numbers(k) for k, _ in cache.pairs()] == [[0, 1, 5, 6, 7], [0.25, 1.25, 5.25, 6.25, 7.25]]
