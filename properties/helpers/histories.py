"""Histories of a bitwise target: requests that come, are verified, roll back, branch and go, in passes that they share.

`World` does the steps, whoever chooses them: Hypothesis, a seeded generator, a GPU. Every row that is ever run is held
against the same text computed alone, bit for bit.
"""

import random
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from transformers import MixtralConfig, MixtralForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from refengine.decoder.protocols import Tokens
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.decoder.targets import bitwise
from refengine.selfcheck.drafters.bits import Alone, Heard, Listened
from refengine.source_edits.edit import Edit

VOCABULARY, SLOTS = 97, 40
CODE = bitwise.__name__
Sizes = dict[str, int]
SIZES: Sizes = {
    "vocab_size": VOCABULARY, "hidden_size": 96, "intermediate_size": 200, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "max_position_embeddings": 64,
}  # fmt: skip
WIDE: Sizes = {
    "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128,
}  # fmt: skip


@cache
def model(kind: str, dtype: torch.dtype, device: str = "cpu") -> PreTrainedModel:
    """Random weights, so large that last bits feel a change of kernel: dense with a sliding layer, the same with layers
    and a vocabulary of a real model's size, or experts."""
    torch.manual_seed(0)
    if kind == "wide":
        made: Any = Qwen3ForCausalLM(Qwen3Config(**SIZES | WIDE))
    elif kind == "experts":
        config: Any = MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, sliding_window=None)
        made = MixtralForCausalLM(config)
    else:
        layers = {"layer_types": ["full_attention", "sliding_attention"], "use_sliding_window": True}
        made = Qwen3ForCausalLM(Qwen3Config(**SIZES, sliding_window=6, max_window_layers=0, **layers))
    for parameter in made.parameters():
        parameter.data.normal_(0, 2 * parameter.shape[-1] ** -0.5)
    made.config._attn_implementation = "eager"
    return made.to(device, dtype).eval().requires_grad_(False)


class World:
    """Requests of one model. `code` is the module of the target: the real one, or one with a defect in it."""

    def __init__(self, model: PreTrainedModel, code: ModuleType = bitwise, lanes: int | None = None) -> None:
        self.model, self.code = model, code
        alone = bitwise.BitwiseTarget(model, SLOTS, lanes)
        self.lanes, self.heard = alone.lanes, Heard(Alone(alone))
        self.requests: list[Listened] = []

    def join(self) -> None:
        """A request that has run nothing yet."""
        self.requests.append(Listened(self.code.BitwiseTarget(self.model, SLOTS, self.lanes), self.heard))

    def step(self, rounds: Sequence[tuple[int, Tokens, Tokens, Tokens]]) -> None:
        """One pass for several requests: (which, tokens, parents, the rows that are kept), row 0 being the anchor.

        A request without a past runs its tokens as a prompt, and keeps them all.
        """
        asked = []
        for which, tokens, parents, _ in rounds:
            one = self.requests[which]
            place, device = len(one.kept), one.target.device
            tree = tree_rows(tokens[0], tokens[1:], parents, place, device)
            asked.append((one, tree if place else chain_rows(tokens, 0, device)))
        passes = self.code.in_lanes([(one.target, rows) for one, rows in asked])
        for (one, rows), passed, (_, _, _, kept) in zip(asked, passes, rounds, strict=True):
            prompt = not one.kept
            one.listen(rows, passed)
            one.keep(range(len(rows.tokens)) if prompt else kept)

    def branch(self, which: int) -> None:
        """A second request that goes on from where one is."""
        self.join()
        self.requests[-1].restore(self.requests[which].state())

    def leave(self, which: int) -> None:
        del self.requests[which]


def drawn_round(source: random.Random, which: int, most: int = 9) -> tuple[int, Tokens, Tokens, Tokens]:
    """Tokens, a random tree over all but the first, and a random path in it; sometimes nothing is kept at all."""
    tokens = tuple(source.randrange(VOCABULARY) for _ in range(source.randint(1, most)))
    parents = tuple(source.choice((node - 1, source.randint(-1, node - 1))) for node in range(len(tokens) - 1))
    path, at = [0], source.randint(-1, len(parents) - 1)
    above: list[int] = []
    while at >= 0:
        above, at = [at + 1, *above], parents[at]
    return which, tokens, parents, tuple(path + above) if source.random() < 0.85 else ()


def wander(world: World, source: random.Random, steps: int) -> None:
    """A random history."""
    for _ in range(steps):
        world.requests = [one for one in world.requests if len(one.kept) < SLOTS - 10]
        chance = source.random()
        if not world.requests or (chance < 0.2 and len(world.requests) < 5):
            world.join()
        elif chance < 0.3:
            world.branch(source.randrange(len(world.requests)))
        elif chance < 0.35:
            world.leave(source.randrange(len(world.requests)))
        there = range(len(world.requests))
        chosen = sorted(source.sample(there, source.randint(min(1, len(there)), len(there))))
        if chosen:
            world.step([drawn_round(source, which) for which in chosen])


# --- what is planted in the target ------------------------------------------------------------------------------------


class Split(TorchFunctionMode):
    """The reductions of one length in two halves: as right as the whole, and other bits."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length, self.half = length, length // 2 // 8 * 8 + 8

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.linear and args[0].shape[-1] == self.length:
            x, w, half = args[0], args[1], self.half
            return func(x[..., :half], w[:, :half]) + func(x[..., half:], w[:, half:])
        return func(*args, **(kwargs or {}))


PADS = "pad(tokens, (0, idle)), pad(positions, (0, idle))"
SLOT = "slot = torch.where(visible, places, self.slots)"
DEFECTS = {
    "kernel shape": Edit(CODE, "idle = len(tokens), target.lanes - len(tokens)", "idle = len(tokens), 0"),
    "keys in another order": Edit(CODE, SLOT, SLOT.replace("places,", "places.argsort().argsort() + self.kept,")),
    "position off by one": Edit(CODE, PADS, f"{PADS} + (count > 3)"),
    "unseen slots weigh": Edit(CODE, "sees = numbers > 0\n", "sees = (numbers > 0) | (count == 5)\n"),
    "a neighbour's key": Edit(CODE, "path - old + first", "(path - old).clamp(min=1) - 1 + first"),
    "rejected keys stay": Edit(CODE, "keep(self.past, index)\n", "keep(self.past, range(len(index)))\n"),
}
