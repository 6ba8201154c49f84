"""A transformers causal language model behind the Target protocol.

The cache is ours, in buffers that a request appends to and cuts in place (`in_place`). Rolling back is the same for a
chain and for a tree, and does not depend on `DynamicCache.crop` (which refuses a positive length since transformers
5.23). Sliding-window layers keep all their rows too, and the window is in the mask: a cache that drops rows cannot take
a rejected token back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedModel

from refengine.decoder.networks.cache import Cache, causal, restore, state
from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.base import called, sizes, widened
from refengine.decoder.targets.in_place import InPlaceCache
from refengine.decoder.targets.lent import Lent

ATTENTION = {"full_attention", "sliding_attention"}
Masks: TypeAlias = Tensor | dict[str, Tensor]


@dataclass(frozen=True)
class Inputs:
    """Everything that the outcome of a forward pass depends on, besides the weights.

    tokens [n], positions [n]
    masks   [1, 1, n, past + n] additive, by layer type where types differ; None: nothing is hidden
    past    the rows before these
    taps    which hidden states are wanted
    judged  of how many rows, the last ones, logits are wanted; None: of all
    """

    tokens: Tensor
    positions: Tensor
    masks: Masks | None
    past: InPlaceCache
    taps: tuple[int, ...] = ()
    judged: int | None = None


@dataclass(frozen=True)
class Outputs:
    """logits [judged, V]; hidden: the taps, each [n, H]."""

    logits: Tensor
    hidden: Mapping[int, Tensor]


Forward: TypeAlias = Callable[[Inputs], Outputs]  # and appends the n rows to `past`, as models of transformers do


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

    @property
    def slides(self) -> bool:
        """Whether distances are of any consequence."""
        return "sliding_attention" in self.types and self.window is not None

    def masks(self, sees: Tensor, distance: Tensor | None, dtype: torch.dtype) -> Masks:
        """Additive masks [b, 1, n, m]. sees, distance [b, n, m]: whether a row sees a key, how far back that stands.

        None where nothing slides.
        """
        full = _additive(sees, dtype)
        if distance is None or self.window is None or not self.slides:
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
        self.forward: Forward = passes or partial(forward, model, dtype=model.dtype)
        self.reset()

    def reset(self) -> None:
        self.cache = InPlaceCache()
        self.kept = 0
        self.tentative = torch.empty(0, dtype=torch.long, device=self.device)  # positions of the tentative rows

    @property
    def past(self) -> Cache:
        """Keys and values of all rows, kept and tentative, as views of where they lie."""
        return self.cache.pairs()

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        inputs = Inputs(rows.tokens, rows.positions, self.masks(rows), self.cache, tuple(taps), rows.judged)
        return self.ran(rows, self.forward(inputs))

    def masks(self, rows: Rows) -> Masks | None:
        """None for one row from which nothing is hidden: attention is faster without a mask."""
        if rows.visible is None and not self.sight.slides:
            new, old = len(rows.tokens), self.kept + len(self.tentative)
            if new == 1:
                return None
            hidden = torch.finfo(self.dtype).min
            return torch.full((1, 1, new, old + new), hidden, dtype=self.dtype, device=self.device).triu_(old + 1)
        sees, distance = self.seen(rows)
        return self.sight.masks(sees[None], None if distance is None else distance[None], self.dtype)

    def seen(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
        """Of every cached row and these: whether each of these sees it, and how far back it stands, if that matters.

        Both [n, m].
        """
        new, old = len(rows.tokens), len(self.tentative)
        visible = causal(new, old, self.device) if rows.visible is None else rows.visible
        sees = pad(visible, (self.kept, 0), value=True)
        if not self.sight.slides:
            return sees, None
        positions = torch.cat((torch.arange(self.kept, device=self.device), self.tentative, rows.positions))
        return sees, rows.positions[:, None] - positions[None, :]

    def ran(self, rows: Rows, outputs: Outputs) -> Pass:
        """A pass over these rows has been made; they are tentative from now on."""
        self.tentative = torch.cat((self.tentative, rows.positions)) if len(self.tentative) else rows.positions
        return Pass(rows.tokens, rows.positions, outputs.logits, outputs.hidden)

    def keep(self, rows: Sequence[int]) -> None:
        self.cache.keep(self.kept, rows)
        self.kept += len(rows)
        self.tentative = self.tentative[:0]

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        k, v = self.past[layer]
        return k[0, :, : self.kept], v[0, :, : self.kept]

    def state(self) -> State:
        held = tuple((k.clone(), v.clone()) for k, v in self.past)  # what lies in the buffers is written over
        return {"kept": self.kept, "tentative": self.tentative, **state(held)}

    def restore(self, state: State) -> None:
        self.reset()
        self.kept, self.tentative = state["kept"], state["tentative"]
        self.cache.append(restore(state))


def _additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    mask = torch.zeros(sees.shape, dtype=dtype, device=sees.device)
    return mask.masked_fill_(~sees, torch.finfo(dtype).min)[:, None]


def forward(model: PreTrainedModel, inputs: Inputs, dtype: torch.dtype | None = None) -> Outputs:
    """One pass: a function of its inputs and the weights, and of nothing else."""
    out = called(
        model, inputs.tokens[None], inputs.positions[None], inputs.past, inputs.masks,
        hidden=bool(inputs.taps), judged=inputs.judged, dtype=dtype,
    )  # fmt: skip
    return Outputs(widened(out.logits[0]), {j: out.hidden_states[j][0] for j in inputs.taps})
