"""The cache of attention: keys and values of rows, one pair for each layer, and which rows a row may see.

Nothing is modified in place: a cache that somebody holds is a snapshot. The axis of the rows is the first.
"""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from refengine.decoder.protocols import State

Pair: TypeAlias = tuple[Tensor, Tensor]  # keys and values of one layer, or latents and the keys that all heads share
Cache: TypeAlias = tuple[Pair, ...]


def append(pair: Pair, new: Pair) -> Pair:
    """One layer's rows, and new ones behind them."""
    return torch.cat((pair[0], new[0])), torch.cat((pair[1], new[1]))


def keep(cache: Cache, rows: Sequence[int] | Tensor) -> Cache:
    """These rows of every layer, in this order, as if no other had been there."""
    return tuple((k.index_select(0, _index(rows, k)), v.index_select(0, _index(rows, v))) for k, v in cache)


def state(cache: Cache) -> State:
    """Flat, as live state is: `kv.<layer>.k` and `kv.<layer>.v`."""
    return {f"kv.{i}.{name}": x for i, pair in enumerate(cache) for name, x in zip("kv", pair, strict=True)}


def restore(state: State) -> Cache:
    """The cache that `state` described; entries of other names are not looked at."""
    layers = sum(name.startswith("kv.") for name in state) // 2
    return tuple((state[f"kv.{i}.k"], state[f"kv.{i}.v"]) for i in range(layers))


def causal(new: int, old: int, device: torch.device) -> Tensor:
    """bool [new, old + new]: each of `new` rows sees all `old` ones, the new ones before it, and itself."""
    return torch.ones(new, old + new, dtype=torch.bool, device=device).tril(old)


def _index(rows: Sequence[int] | Tensor, like: Tensor) -> Tensor:
    return torch.as_tensor(rows, dtype=torch.long, device=like.device)
