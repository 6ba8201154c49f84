"""A causal language model with recurrent layers (Qwen3-Next, Qwen3.5) behind the Target protocol.

A recurrent state cannot be rolled back by indexing: it has to be remembered. So rows after the prompt are run one by
one, and the cache after each of them is kept until `keep` says which one stays. Chains only: a row of a tree would need
the state of its parent.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.lent import Lent
from refengine.decoder.targets.transformers import Float64

# What a cache holds, flat: "layer.attribute" or "layer.attribute.key" -> tensor or flag. Tensors are copies.
Past: TypeAlias = Mapping[str, Any]
Step: TypeAlias = Callable[[Tensor, Tensor, Past], tuple[Tensor, tuple[Tensor, ...], Past]]


class RecurrentTarget:
    """Any causal LM of transformers, at the price of one pass a row. Raises ValueError when asked to run a tree.

    passes  instead of `step`, a function that gives the same (one that remembers)
    """

    def __init__(self, model: PreTrainedModel, passes: Step | None = None) -> None:
        config = model.config.get_text_config()
        self.model = model
        self.vocabulary: int = config.vocab_size
        self.width: int = config.hidden_size
        self.layers: int = config.num_hidden_layers
        self.lends = Lent(model)
        self.step: Step = passes or partial(step, model)
        self.reset()

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    @property
    def device(self) -> torch.device:
        return self.model.device

    def reset(self) -> None:
        self.past: Past = {}
        self.kept = 0
        self.after: list[Past] = []  # the cache after each tentative row; after a whole prompt only its end is true

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        count, old = len(rows.tokens), len(self.after)
        if rows.visible is not None and not torch.equal(rows.visible, torch.ones_like(rows.visible).tril(old)):
            raise ValueError("a target with recurrent layers runs chains only, and these rows are a tree")
        past, found = self.after[-1] if self.after else self.past, []
        size = 1 if past else count  # a prompt is one pass
        for i in range(0, count, size):
            logits, hidden, past = self.step(rows.tokens[i : i + size], rows.positions[i : i + size], past)
            found.append((logits, hidden))
            self.after += [past] * size
        logits = torch.cat([one for one, _ in found])
        return Pass(rows.tokens, rows.positions, logits, {j: torch.cat([h[j] for _, h in found]) for j in taps})

    def keep(self, rows: Sequence[int]) -> None:
        if list(rows) != list(range(len(rows))):
            raise ValueError(f"rows {list(rows)} are no beginning of a chain, and recurrent states have no other")
        if self.kept == 0 and 0 < len(rows) < len(self.after):
            raise ValueError("a prompt was run in one pass: all of it is kept, or nothing")
        self.past = self.after[len(rows) - 1] if rows else self.past
        self.kept += len(rows)
        self.after = []

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        return self.past[f"{layer}.keys"][0], self.past[f"{layer}.values"][0]

    def state(self) -> State:
        return {"kept": self.kept, "tentative": len(self.after), **self.past}

    def restore(self, state: State) -> None:
        past = dict(state)
        self.kept, self.after = past.pop("kept"), []
        del past["tentative"]
        self.past = past


def step(
    model: PreTrainedModel, tokens: Tensor, positions: Tensor, past: Past
) -> tuple[Tensor, tuple[Tensor, ...], Past]:
    """One pass over a chain: (logits [n, V], hs[0..L] of [n, H], the cache after it), a function of its inputs."""
    cache = DynamicCache(config=model.config)
    for name, value in past.items():
        layer, attribute, *key = name.split(".")
        held = value.clone() if isinstance(value, Tensor) else value  # recurrent states are updated in place
        if key:
            vars(cache.layers[int(layer)])[attribute][int(key[0])] = held
        else:
            vars(cache.layers[int(layer)])[attribute] = held
    with torch.no_grad(), Float64() if model.dtype is torch.float64 else torch.no_grad():
        out = model(
            input_ids=tokens[None],
            position_ids=positions[None],
            past_key_values=cache,
            use_cache=True,
            output_hidden_states=True,
        )
    logits = out.logits[0]
    wide = logits if logits.dtype is torch.float64 else logits.float()
    return wide, tuple(h[0] for h in out.hidden_states), _flat(cache)


def _flat(cache: DynamicCache) -> Past:
    held: dict[str, Any] = {}
    for i, layer in enumerate(cache.layers):
        for attribute, value in vars(layer).items():
            if isinstance(value, dict):
                held |= {f"{i}.{attribute}.{key}": part for key, part in value.items()}
            else:
                held[f"{i}.{attribute}"] = value
    return held
