"""A transformers causal language model behind the Target protocol.

The cache is a plain list of keys and values that this file owns: every pass hands it to the model in a fresh
`DynamicCache` and takes it back. Rolling back is then indexing, the same for a chain and for a tree, and does not
depend on `DynamicCache.crop` (which refuses a positive length since transformers 5.23). Sliding-window layers keep all
their rows too, and the window is in the mask: a cache that drops rows cannot take a rejected token back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from refengine.decoder.networks.cache import Cache, causal, keep, restore, state
from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.base import called, sizes, widened
from refengine.decoder.targets.lent import Lent

ROWS = 2  # the axis of the rows in a model's keys and values, [1, G, n, d]
ATTENTION = {"full_attention", "sliding_attention"}
Masks: TypeAlias = Tensor | dict[str, Tensor]


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


@dataclass(frozen=True)
class Sight:
    """What the attention layers of a model let a row see: all before it, or a window of it, by layer type.

    by_type  whether the model takes one mask for each type, or one for all
    """

    types: frozenset[str]
    window: int | None
    by_type: bool

    @staticmethod
    def of(config: Any) -> "Sight":
        """Of the text config. Raises ValueError for layers of another kind, and for a model that is not causal."""
        window, types = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
        kinds = frozenset(types or (["sliding_attention"] if window else ["full_attention"]))
        if unknown := kinds - ATTENTION:
            raise ValueError(f"{config.model_type}: layers of type {', '.join(sorted(unknown))} cannot be rolled back")
        if getattr(config, "use_bidirectional_attention", None) == "all":
            raise ValueError(
                f"{config.model_type}: use_bidirectional_attention is 'all', and decoding needs a causal model"
            )
        return Sight(kinds, window, types is not None and len(kinds) > 1)

    def masks(self, sees: Tensor, distance: Tensor, dtype: torch.dtype) -> Masks:
        """Additive masks [b, 1, n, m]. sees, distance [b, n, m]: whether a row sees a key, how far back that stands."""
        full = _additive(sees, dtype)
        if "sliding_attention" not in self.types or self.window is None:
            return full
        near = distance < self.window
        sliding = _additive(sees & near, dtype)
        return {"full_attention": full, "sliding_attention": sliding} if self.by_type else sliding


class TransformersTarget:
    """Any causal LM of transformers whose layers are full or sliding attention, one request at a time.

    passes  instead of `forward`, a function that gives the same (one that remembers)
    Raises ValueError for a model with other layers (recurrent state cannot be rolled back by indexing).
    """

    def __init__(self, model: PreTrainedModel, passes: Forward | None = None) -> None:
        self.sight = Sight.of(model.config.get_text_config())
        self.model, self.dtype, self.device = model, model.dtype, model.device
        self.vocabulary, self.width, self.layers = sizes(model)
        self.lends = Lent(model)
        self.forward: Forward = passes or partial(forward, model)
        self.reset()

    def reset(self) -> None:
        self.past: Cache = ()
        self.kept = 0
        self.tentative = torch.empty(0, dtype=torch.long, device=self.device)  # positions of the tentative rows

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        sees, distance = self.seen(rows)
        masks = self.sight.masks(sees[None], distance[None], self.dtype)
        inputs = Inputs(rows.tokens, rows.positions, masks, self.past)
        return self.ran(rows, self.forward(inputs), taps)

    def seen(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Of every cached row and these: whether each of these sees it, and how far back it stands. Both [n, m]."""
        new, old = len(rows.tokens), len(self.tentative)
        visible = causal(new, old, self.device) if rows.visible is None else rows.visible
        positions = torch.cat((torch.arange(self.kept, device=self.device), self.tentative, rows.positions))
        sees = torch.cat((visible.new_ones(new, self.kept), visible), -1)
        return sees, rows.positions[:, None] - positions[None, :]

    def ran(self, rows: Rows, outputs: Outputs, taps: Sequence[int]) -> Pass:
        """Take over what a pass over these rows put out; they are tentative from now on."""
        self.past = outputs.past
        self.tentative = torch.cat((self.tentative, rows.positions))
        return Pass(rows.tokens, rows.positions, outputs.logits, {j: outputs.hidden[j] for j in taps})

    def keep(self, rows: Sequence[int]) -> None:
        first = tuple(rows) == tuple(range(len(rows)))
        kept = range(self.kept + len(rows)) if first else [*range(self.kept), *(self.kept + row for row in rows)]
        self.past = keep(self.past, kept, ROWS)
        self.kept += len(rows)
        self.tentative = self.tentative[:0]

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        k, v = self.past[layer]
        return k[0, :, : self.kept], v[0, :, : self.kept]

    def state(self) -> State:
        return {"kept": self.kept, "tentative": self.tentative, **state(self.past)}

    def restore(self, state: State) -> None:
        self.kept, self.tentative, self.past = state["kept"], state["tentative"], restore(state)


def _additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    blocked = torch.full_like(sees, torch.finfo(dtype).min, dtype=dtype)
    return torch.where(sees, torch.zeros_like(blocked), blocked)[:, None]


def forward(model: PreTrainedModel, inputs: Inputs) -> Outputs:
    """One pass: a function of its inputs and the weights, and of nothing else."""
    cache = filled(inputs.past)
    out = called(model, inputs.tokens[None], inputs.positions[None], cache, inputs.masks)
    return Outputs(widened(out.logits[0]), tuple(h[0] for h in out.hidden_states), taken_back(cache))


def filled(past: Cache) -> DynamicCache:
    """A cache of transformers that holds these keys and values, [b, G, n, d]."""
    cache = DynamicCache()
    for k, v in past:
        layer: Any = DynamicLayer()  # type: ignore[no-untyped-call]  # given its tensors as they are: `update` would copy them
        layer.lazy_initialization(k, v)
        layer.keys, layer.values = k, v
        cache.layers.append(layer)
    return cache


def taken_back(cache: DynamicCache) -> Cache:
    layers: list[Any] = list(cache.layers)
    return tuple((layer.keys, layer.values) for layer in layers)
