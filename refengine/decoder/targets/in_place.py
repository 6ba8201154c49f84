"""The cache of a transformers model as buffers with room: rows are appended, taken back and kept where they lie.

    kept rows | tentative rows | room

Kept rows never move and are not written again, so a view of them holds as long as whoever has it. Everything behind
them may be written over by the next pass. A buffer that is full is replaced by one of twice the length. As passes are,
buffers are made and written in inference mode.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from refengine.decoder.networks.cache import Cache, Pair

ROWS = 2  # the axis of the rows in a model's keys and values, [1, G, n, d]


class InPlaceLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer. `keys` and `values` are views of the rows that are there."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.room: tuple[Tensor, ...] = ()  # the buffers that `keys` and `values` are the beginning of

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> Pair:
        """Append rows; what the model attends to: all that are there."""
        old = self.get_seq_length()
        new = old + key_states.shape[ROWS]
        if not self.room or new > self.room[0].shape[ROWS]:
            self._grow(old, 2 * new, (key_states, value_states))
        for buffer, rows in zip(self.room, (key_states, value_states), strict=True):
            buffer.narrow(ROWS, old, new - old).copy_(rows)
        self.cut(new)
        return self.keys, self.values  # type: ignore[return-value]  # `cut` has set them

    def cut(self, count: int) -> None:
        """The first rows stay."""
        self.keys, self.values = (buffer.narrow(ROWS, 0, count) for buffer in self.room)

    def get_seq_length(self) -> int:
        return 0 if self.keys is None else self.keys.shape[ROWS]

    def _grow(self, old: int, room: int, like: Pair) -> None:
        grown = tuple(x.new_empty(*x.shape[:ROWS], room, *x.shape[ROWS + 1 :]) for x in like)
        for buffer, held in zip(grown, self.room, strict=False):
            buffer[:, :, :old] = held[:, :, :old]
        self.room, self.is_initialized = grown, True


class InPlaceCache(DynamicCache):
    """All layers of a model, for as long as a request lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.layer_class_to_replicate = InPlaceLayer

    def pairs(self) -> Cache:
        """The rows that are there, as views."""
        layers: list[Any] = self.layers
        return tuple((layer.keys, layer.values) for layer in layers)

    @torch.inference_mode()
    def append(self, rows: Cache) -> None:
        """Rows of every layer, from elsewhere."""
        for number, (k, v) in enumerate(rows):
            self.update(k, v, number)

    @torch.inference_mode()
    def keep(self, kept: int, rows: Sequence[int]) -> None:
        """Of the rows behind the first `kept` these stay, in this order.

        Raises ValueError for a row that is not there: behind the tentative rows lie those that were taken back.
        """
        end, there = kept + len(rows), self.get_seq_length() - kept
        if any(not 0 <= row < there for row in rows):
            raise ValueError(f"rows {list(rows)} cannot be kept of {there} tentative rows")
        moved = tuple(rows) != tuple(range(len(rows)))
        for layer in self.layers:
            assert isinstance(layer, InPlaceLayer)
            if moved:
                index = torch.tensor(rows, device=layer.room[0].device) + kept
                for buffer in layer.room:
                    buffer[:, :, kept:end] = buffer.index_select(ROWS, index)
            if end != layer.get_seq_length():
                layer.cut(end)
