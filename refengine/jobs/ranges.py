"""Ranges of a counter: shards of one campaign throw different coins because they count in different places.

A campaign counts its lanes from 0, and lane n throws the coins of Philox request n mod 2^32 under the key
seed + 2^32 (n div 2^32): one (key, request) for each seed below 2^32 and each n below 2^64, so that no two lanes of a
campaign, and no two campaigns with different seeds, ever throw the same coin. Up to 2^32 lanes that is Philox(seed, n).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from refengine.engine.coins import Philox

REQUESTS = 1 << 32  # of one key


@dataclass(frozen=True)
class Range:
    """The lanes first, first + 1, ..., first + count - 1."""

    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count


def split(whole: Range, size: int) -> list[Range]:
    """`whole` in its order, `size` lanes at a time; the last may be shorter. It does not depend on who will run it."""
    return [Range(first, min(size, whole.end - first)) for first in range(whole.first, whole.end, size)]


def batches(whole: Range, most: int) -> Iterator[Range]:
    """`whole` in its order, at most so many lanes at a time, each batch under one key."""
    first = whole.first
    while first < whole.end:
        end = min(first + most, whole.end, (first // REQUESTS + 1) * REQUESTS)
        yield Range(first, end - first)
        first = end


def coins(seed: int, batch: Range) -> Philox:
    """The coins of the lanes of a batch. Raises ValueError where they are under two keys, or the seed is too large."""
    key, request = divmod(batch.first, REQUESTS)
    if not (0 <= seed < REQUESTS and key < REQUESTS):
        raise ValueError(f"a campaign's seed and its lanes / 2^32 lie in [0, 2^32), got {seed} and {key}")
    if request + batch.count > REQUESTS:
        raise ValueError(f"the {batch.count} lanes from {batch.first} on are under two keys")
    return Philox(seed + REQUESTS * key, torch.arange(request, request + batch.count))
