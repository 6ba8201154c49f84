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
from torch.overrides import TorchFunctionMode
from transformers import DynamicCache, PreTrainedModel

from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.lent import Lent

KV: TypeAlias = tuple[tuple[Tensor, Tensor], ...]  # one pair of [1, G, n, d] per layer that caches
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
    past: KV


@dataclass(frozen=True)
class Outputs:
    """logits [n, V]; hidden: hs[0..L], each [n, H]; past with the n rows appended."""

    logits: Tensor
    hidden: tuple[Tensor, ...]
    past: KV


Forward: TypeAlias = Callable[[Inputs], Outputs]


class TransformersTarget:
    """Any causal LM of transformers whose layers are full or sliding attention, one request at a time.

    passes  instead of `forward`, a function that gives the same (one that remembers)
    Raises ValueError for a model with other layers (recurrent state cannot be rolled back by indexing).
    """

    def __init__(self, model: PreTrainedModel, passes: Forward | None = None) -> None:
        config = model.config.get_text_config()
        self.model = model
        self.vocabulary: int = config.vocab_size
        self.width: int = config.hidden_size
        self.layers: int = config.num_hidden_layers
        self.window: int | None = getattr(config, "sliding_window", None)
        types = getattr(config, "layer_types", None)
        self.layer_types: set[str] = set(types or (["sliding_attention"] if self.window else ["full_attention"]))
        if unknown := self.layer_types - ATTENTION:
            raise ValueError(f"{config.model_type}: layers of type {', '.join(sorted(unknown))} cannot be rolled back")
        if getattr(config, "use_bidirectional_attention", None) == "all":
            raise ValueError(
                f"{config.model_type}: use_bidirectional_attention is 'all', and decoding needs a causal model"
            )
        self.masks_by_type = types is not None and len(self.layer_types) > 1
        self.lends = Lent(model)
        self.forward: Forward = passes or partial(forward, model)
        self.reset()

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    @property
    def device(self) -> torch.device:
        return self.model.device

    def reset(self) -> None:
        self.past: KV = ()
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
        self.past = tuple((k[:, :, index], v[:, :, index]) for k, v in self.past)
        self.kept += len(rows)
        self.tentative = self.tentative[:0]

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        k, v = self.past[layer]
        return k[0, :, : self.kept], v[0, :, : self.kept]

    def state(self) -> State:
        layers = {f"kv.{i}.{name}": x for i, kv in enumerate(self.past) for name, x in zip("kv", kv, strict=True)}
        return {"kept": self.kept, "tentative": self.tentative, **layers}

    def restore(self, state: State) -> None:
        layers = (len(state) - 2) // 2
        self.kept, self.tentative = state["kept"], state["tentative"]
        self.past = tuple((state[f"kv.{i}.k"], state[f"kv.{i}.v"]) for i in range(layers))

    def _masks(self, rows: Rows, positions: Tensor) -> Masks:
        """Additive masks [1, 1, n, all rows]; `positions` are those of all rows, the new ones last."""
        new, old = len(rows.tokens), len(self.tentative)
        visible = rows.visible
        if visible is None:
            visible = torch.ones(new, old + new, dtype=torch.bool, device=self.device).tril(old)
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
    with torch.no_grad(), Float64() if model.dtype is torch.float64 else torch.no_grad():
        out = model(
            input_ids=inputs.tokens[None],
            position_ids=inputs.positions[None],
            attention_mask=inputs.masks,
            past_key_values=cache,
            use_cache=True,
            output_hidden_states=True,
        )
    logits = out.logits[0]
    wide = logits if logits.dtype is torch.float64 else logits.float()  # policies and rules never see half precision
    return Outputs(wide, tuple(h[0] for h in out.hidden_states), _taken_back(cache))


def _taken_back(cache: DynamicCache) -> KV:
    layers: list[Any] = list(cache.layers)
    return tuple((layer.keys, layer.values) for layer in layers)


class Float64(TorchFunctionMode):
    """Every float32 that a model asks for by name is float64.

    Models compute norms, softmax and rotary angles "in float32", whatever their weights are: rounding to it in the
    middle of a float64 pass would leave 1e-8 where exact laws need 1e-15.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
        named = {k: torch.float64 if arg is torch.float32 else arg for k, arg in (kwargs or {}).items()}
        return func(*args, **named)
