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

from refengine.decoder.networks.cache import causal
from refengine.decoder.protocols import Pass, Rows, State
from refengine.decoder.targets.base import called, sizes, widened
from refengine.decoder.targets.lent import Lent

# What a cache holds, flat: "layer.attribute" or "layer.attribute.key" -> tensor or flag. Tensors are copies.
Past: TypeAlias = Mapping[str, Any]
Step: TypeAlias = Callable[[Tensor, Tensor, Past], tuple[Tensor, tuple[Tensor, ...], Past]]


class RecurrentTarget:
    """Any causal LM of transformers, at the price of one pass a row. Raises ValueError when asked to run a tree.

    passes  instead of `step`, a function that gives the same (one that remembers)
    slots   given: bitwise. The rows of a prompt are passes of their own too, and every row then has one sequence of
            bits. No buffer is needed for it: only its draft model, if it has one, has as many slots
    """

    def __init__(self, model: PreTrainedModel, passes: Step | None = None, slots: int | None = None) -> None:
        self.model, self.dtype, self.device = model, model.dtype, model.device
        self.vocabulary, self.width, self.layers = sizes(model)
        self.lends, self.slots = Lent(model), slots
        self.step: Step = passes or partial(step, model)
        self.reset()

    def reset(self) -> None:
        self.past: Past = {}
        self.kept = 0
        self.after: list[Past] = []  # the cache after each tentative row; after a whole prompt only its end is true

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        count, old = len(rows.tokens), len(self.after)
        if rows.visible is not None and not torch.equal(rows.visible, causal(count, old, self.device)):
            raise ValueError("a target with recurrent layers runs chains only, and these rows are a tree")
        past, found = self.after[-1] if self.after else self.past, []
        size = 1 if past or self.slots else max(count, 1)  # a prompt is one pass
        for i in range(0, count, size):
            logits, hidden, past = self.step(rows.tokens[i : i + size], rows.positions[i : i + size], past)
            found.append((logits, hidden))
            self.after += [past] * size
        logits = torch.cat([one for one, _ in found])
        return Pass(rows.tokens, rows.positions, logits, {j: torch.cat([h[j] for _, h in found]) for j in taps})

    def keep(self, rows: Sequence[int]) -> None:
        if list(rows) != list(range(len(rows))):
            raise ValueError(f"rows {list(rows)} are no beginning of a chain, and recurrent states have no other")
        if self.kept == 0 and 0 < len(rows) < len(self.after) and not self.slots:
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
    out = called(model, tokens[None], positions[None], cache)
    return widened(out.logits[0]), tuple(h[0] for h in out.hidden_states), _flat(cache)


def _flat(cache: DynamicCache) -> Past:
    held: dict[str, Any] = {}
    for i, layer in enumerate(cache.layers):
        for attribute, value in vars(layer).items():
            if isinstance(value, dict):
                held |= {f"{i}.{attribute}.{key}": part for key, part in value.items()}
            else:
                held[f"{i}.{attribute}"] = value
    return held
