"""A transformers causal language model behind the Target protocol.

The cache is a plain list of keys and values that this file owns: every pass hands it to the model in a fresh
`DynamicCache` and takes it back. Rolling back is then indexing, the same for a chain and for a tree, and does not
depend on `DynamicCache.crop` (which refuses a positive length since transformers 5.23). Sliding-window layers keep all
their rows too, and the window is in the mask: a cache that drops rows cannot take a rejected token back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from refengine.decoder.networks.cache import Cache, causal, keep, restore, state
from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.base import called, sizes, widened

ROWS = 2  # the axis of the rows in a model's keys and values, [1, G, n, d]
Masks: TypeAlias = Tensor | dict[str, Tensor]
ATTENTION = {"full_attention", "sliding_attention"}


@dataclass(frozen=True)
class Inputs:
    """Everything that the outcome of a forward pass depends on, besides the weights.

    tokens [n], positions [n], masks [1, 1, n, past + n] additive (by layer type where types differ), past
    """

    tokens: Tensor
    positions: Tensor
    masks: Masks
    past: Cache


@dataclass(frozen=True)
class Outputs:
    """logits [n, V]; hidden: hs[0..L], each [n, H]; past with the n rows appended."""

    logits: Tensor
    hidden: tuple[Tensor, ...]
    past: Cache


Forward: TypeAlias = Callable[[Inputs], Outputs]


class TransformersTarget:
    """Any causal LM of transformers whose layers are full or sliding attention, one request at a time.

    Raises ValueError for a model with other layers (recurrent state cannot be rolled back by indexing).
    """

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config()
        self.window: int | None = getattr(config, "sliding_window", None)
        types = getattr(config, "layer_types", None)
        self.layer_types: set[str] = set(types or (["sliding_attention"] if self.window else ["full_attention"]))
        if unknown := self.layer_types - ATTENTION:
            raise ValueError(f"{config.model_type}: layers of type {', '.join(sorted(unknown))} cannot be rolled back")
        if getattr(config, "use_bidirectional_attention", None) == "all":
            raise ValueError(
                f"{config.model_type}: use_bidirectional_attention is 'all', and decoding needs a causal model"
            )
        self.model, self.dtype, self.device = model, model.dtype, model.device
        self.vocabulary, self.width, self.layers = sizes(model)
        self.masks_by_type = types is not None and len(self.layer_types) > 1
        self.forward: Forward = lambda inputs: forward(model, inputs)
        self.reset()

    def reset(self) -> None:
        self.past: Cache = ()
        self.kept = 0
        self.tentative = torch.empty(0, dtype=torch.long, device=self.device)  # positions of the tentative rows

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        positions = torch.cat((torch.arange(self.kept, device=self.device), self.tentative, rows.positions))
        inputs = Inputs(rows.tokens, rows.positions, self._masks(rows, positions), self.past)
        outputs = self.forward(inputs)
        self.past = outputs.past
        self.tentative = torch.cat((self.tentative, rows.positions))
        return Pass(rows.tokens, rows.positions, outputs.logits, {j: outputs.hidden[j] for j in taps})

    def keep(self, rows: Sequence[int]) -> None:
        index = torch.tensor([*range(self.kept), *(self.kept + row for row in rows)], device=self.device)
        self.past = keep(self.past, index, ROWS)
        self.kept += len(rows)
        self.tentative = self.tentative[:0]

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        k, v = self.past[layer]
        return k[0, :, : self.kept], v[0, :, : self.kept]

    def state(self) -> State:
        return {"kept": self.kept, "tentative": self.tentative, **state(self.past)}

    def restore(self, state: State) -> None:
        self.kept, self.tentative, self.past = state["kept"], state["tentative"], restore(state)

    def _masks(self, rows: Rows, positions: Tensor) -> Masks:
        """Additive masks [1, 1, n, all rows]; `positions` are those of all rows, the new ones last."""
        new, old = len(rows.tokens), len(self.tentative)
        visible = causal(new, old, self.device) if rows.visible is None else rows.visible
        sees = torch.cat((visible.new_ones(new, self.kept), visible), -1)
        full = _additive(sees, self.dtype)
        if "sliding_attention" not in self.layer_types or self.window is None:
            return full
        near = rows.positions[:, None] - positions[None, :] < self.window
        sliding = _additive(sees & near, self.dtype)
        return {"full_attention": full, "sliding_attention": sliding} if self.masks_by_type else sliding


def _additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    blocked = torch.full_like(sees, torch.finfo(dtype).min, dtype=dtype)
    return torch.where(sees, torch.zeros_like(blocked), blocked)[None, None]


def forward(model: PreTrainedModel, inputs: Inputs) -> Outputs:
    """One pass: a function of its inputs and the weights, and of nothing else."""
    cache = DynamicCache()
    for layer, (k, v) in enumerate(inputs.past):
        cache.update(k, v, layer)
    out = called(model, inputs.tokens[None], inputs.positions[None], cache, inputs.masks)
    layers: list[Any] = list(cache.layers)
    past = tuple((layer.keys, layer.values) for layer in layers)
    return Outputs(widened(out.logits[0]), tuple(h[0] for h in out.hidden_states), past)
