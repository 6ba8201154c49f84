"""Drafters of sizes that no fixture has, against the layers of transformers: every layout of EAGLE, P-EAGLE, DFlash,
DSpark, DART and Medusa, written as released, loaded and played through whole rounds in float64."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from properties.helpers.checkpoints import any_block, any_eagle
from properties.helpers.checkpoints.any_shape import Coins, Peer, linear, named, random_target, shaken
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter
from refengine.decoder.checkpoints.layouts.dart_ngrams import write_trie
from refengine.decoder.drafters.dart import TreeSearch
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.drafters.medusa import Medusa
from refengine.decoder.loop import Session
from refengine.decoder.networks.feature_recurrence import Draft
from refengine.decoder.protocols import Tokens
from refengine.decoder.targets.base import Float64
from refengine.decoder.targets.transformers import TransformersTarget, forward
from refengine.engine.policy import pipeline, temperature
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.remembering import appending

LAYERS = 7  # of every target: layers 2, L / 2 and L - 3 are three
PROMPT = (3, 8, 1, 1, 5, 0, 7, 2)
TURNS = (((0, 0), 4), ((), 6))  # what is accepted of a round, and the token behind it


def medusa(source: Random, model: Any) -> Peer:
    heads, layers = source.choice((1, 2, 4)), source.choice((0, 1, 2, 3))
    hidden, vocabulary = model.config.hidden_size, model.config.vocab_size
    tensors, stacks = dict[str, Tensor](), list[list[Any]]()
    for i in range(heads):
        stack = [shaken(linear(hidden, hidden, True), source) for _ in range(layers)]
        stacks.append([*stack, shaken(linear(hidden, vocabulary), source)])
        for j, one in enumerate(stack):
            tensors |= named(f"{i}.{j}.linear.", one)
        tensors |= named(f"{i}.{layers}.", stacks[-1][-1])

    def head(stack: list[Any], x: Tensor) -> Tensor:
        for one in stack[:-1]:
            x = x + torch.nn.functional.silu(one(x))
        out: Tensor = stack[-1](x)
        return out

    config = {"medusa_num_heads": heads, "medusa_num_layers": layers}
    chain = lambda features, *_: torch.stack([head(stack, features[-1]) for stack in stacks])  # noqa: E731
    return Peer(config, tensors, (LAYERS,), chain, lambda *_: heads)


CHAIN = {"plan": Chain(any_eagle.DRAFTED)}
MADE: dict[str, tuple[Callable[[Random, Any], Peer], dict[str, Any]]] = {  # and the options it is loaded with
    "EAGLE-1": (any_eagle.eagle1, CHAIN),
    "EAGLE-3 of SafeAILab": (any_eagle.safeailab, CHAIN),
    "EAGLE-3 of SpecForge": (any_eagle.specforge, CHAIN),
    "EAGLE-3 of DeepSpec": (any_eagle.deepspec, {}),
    "EAGLE-3 of DeepSpec for Gemma 4": (partial(any_eagle.deepspec, family="gemma4"), {}),
    "EAGLE-3 of speculators": (any_eagle.speculators, {}),
    "P-EAGLE of speculators": (partial(any_eagle.speculators, kind="peagle"), {}),
    "P-EAGLE of Amazon": (any_eagle.amazon, {"gamma": any_eagle.DRAFTED}),
    "DART": (any_eagle.dart, {}),
    "Medusa": (medusa, {}),
    "DFlash of z-lab": (any_block.zlab, {"greedy": False}),
    "DFlash of transformers": (any_block.transformers, {}),
    "DFlash of speculators": (any_block.speculators, {}),
    "DSpark of speculators": (partial(any_block.speculators, kind="dspark"), {}),
    "DSpark of speculators, recurrent behind the anchor": (
        partial(any_block.speculators, kind="dspark", head="rnn"),
        {},
    ),
    "DSpark of DeepSpec": (any_block.deepspec, {}),
    "DSpark of DeepSpec for Gemma 4": (partial(any_block.deepspec, family="gemma4"), {}),
}


@cache
def model_of(seed: int) -> tuple[Any, Any]:
    """A target's model, and its passes, remembered."""
    model = random_target(Random(seed), LAYERS)
    return model, appending(partial(forward, model))


@cache
def states_of(seed: int, text: Tokens) -> tuple[Tensor, ...]:
    """Its hidden states, without a cache."""
    with Float64():
        out = model_of(seed)[0](torch.tensor([text]), output_hidden_states=True, use_cache=False)
    return tuple(state[0] for state in out.hidden_states)


def undrawn(drafter: Any, anchor: int) -> Tensor | None:
    """The logits that a drafter looks at which draws nothing from them."""
    if isinstance(drafter, Medusa):
        return drafter.heads(drafter.hidden)
    if isinstance(getattr(drafter, "plan", None), TreeSearch):
        draft = Draft(drafter.network, drafter.cache, drafter.length, anchor, drafter.feature)
        return drafter.plan.levels(draft)  # type: ignore[no-any-return]
    return None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", MADE)
@torch.inference_mode()
def test_rounds_are_those_of_the_official_layers(name: str, seed: int, tmp_path: Path) -> None:
    """Kills a size that stands for another of the same value, a bias, a norm, an epsilon or a window that is read in
    the fixtures' shapes alone, and a default that no fixture leaves out."""
    (model, passes), (make, options) = model_of(seed), MADE[name]
    peer, target = make(Coins(name, seed), model), TransformersTarget(model, passes)
    if peer.config.get("enable_confidence_head"):
        options = {"threshold": any_block.THRESHOLD}
    folder = peer.write(tmp_path / "drafter")
    write_trie(Trie.of([[1, 2, 1, 3]]), folder / "full.trie")  # of DART
    drafter = load_drafter(folder, target, **options)
    session = Session(target, drafter, along((), 0), pipeline(temperature(1.0)), 10**6)
    session.begin(tuple(x % target.vocabulary for x in PROMPT), COINS)
    for turns, token in TURNS:
        prefix = session.prompt + session.out
        found = undrawn(drafter, prefix[-1])
        session.rule = along(turns, token)
        session.play(COINS)
        block = session.rounds[-1].block
        drafted = block.tokens[0].tolist()
        with Float64():
            features = torch.cat([states_of(seed, prefix[:-1])[tap] for tap in peer.taps], -1)
            rows = peer.chain(features, prefix, drafted)
            assert block.q is None or len(drafted) == peer.length(features, prefix, drafted)
        q = block.q[0] if block.q is not None else None if found is None else found.softmax(-1)
        assert q is not None
        assert torch.allclose(q, rows[: len(q)].softmax(-1), rtol=0, atol=1e-9)
