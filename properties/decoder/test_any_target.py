"""Targets of sizes, windows and families that no fixture has: rows of trees, alone and in company, against the model's
own rows of each path; and what a target lends."""

from random import Random
from typing import Any

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from properties.helpers.checkpoints.any_shape import shaken
from refengine.decoder.checkpoints.reading.target_probe import behind_the_protocol
from refengine.decoder.protocols import Tokens
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.decoder.targets.base import Float64
from refengine.decoder.targets.together import run_together
from refengine.decoder.targets.transformers import TransformersTarget

SOME = ["sliding_attention", "full_attention", "sliding_attention"]
FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "Llama, one head to all": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 1, "attention_bias": True}),
    "Qwen2, some slide": (
        Qwen2ForCausalLM,
        Qwen2Config,
        {"num_key_value_heads": 3, "sliding_window": 2, "use_sliding_window": True, "layer_types": SOME},
    ),
    "Mistral, all slide": (MistralForCausalLM, MistralConfig, {"num_key_value_heads": 2, "sliding_window": 4}),
    "Gemma 2, capped": (Gemma2ForCausalLM, Gemma2Config, {"num_key_value_heads": 6, "sliding_window": 3}),
    "Gemma 3": (Gemma3ForCausalLM, Gemma3TextConfig, {"num_key_value_heads": 2, "sliding_window": 1}),
}


def made(name: str, source: Random, **fields: Any) -> Any:
    kind, config, more = FAMILIES[name]
    sizes = {
        "vocab_size": 13, "hidden_size": 12, "intermediate_size": 7, "num_hidden_layers": 3, "num_attention_heads": 6,
        "head_dim": 4, "rms_norm_eps": 0.01, "max_position_embeddings": 64, "tie_word_embeddings": True,
        "pad_token_id": None, "bos_token_id": None, "eos_token_id": None, "attn_implementation": "eager",
    }  # fmt: skip
    with Float64():
        return shaken(kind(config(**{**sizes, **more, **fields})), source)


def grown(source: Random, count: int) -> tuple[Tokens, Tokens]:
    """The tokens and parents of a random tree; a chain now and then."""
    chain = source.random() < 0.3
    parents = tuple(node - 1 if chain else source.randrange(-1, node) for node in range(count))
    return tuple(source.randrange(13) for _ in range(count)), parents


def above(node: int, parents: Tokens) -> list[int]:
    """The nodes from the root to this one."""
    return [] if node < 0 else [*above(parents[node], parents), node]


@pytest.mark.parametrize(("lanes", "slots"), [(1, None), (5, None), (3, 24)])
@pytest.mark.parametrize("name", FAMILIES)
@torch.inference_mode()
def test_rows_of_any_tree_in_any_company_are_those_of_their_paths(name: str, lanes: int, slots: int | None) -> None:
    """Kills a width, a group, a window or a position that is right for one size, or for lanes of one length."""
    source = Random(f"{name} {lanes}")
    model = made(name, source)
    targets: list[Any] = [behind_the_protocol(model, slots) for _ in range(lanes)]
    texts = [tuple(source.randrange(13) for _ in range(source.randrange(1, 8))) for _ in targets]
    asks = [(target, chain_rows(text, 0, target.device)) for target, text in zip(targets, texts, strict=True)]
    for (target, rows), passed in zip(asks, run_together(asks, (0, 2, 3)), strict=True):
        hold(model, tuple(rows.tokens.tolist()), passed, -1)
        target.keep(range(len(rows.tokens)))
    for _ in range(2):
        anchors = [source.randrange(13) for _ in targets]
        trees = [grown(source, source.randrange(6)) for _ in targets]
        asks = [
            (target, tree_rows(anchor, *tree, len(text), target.device))
            for target, anchor, tree, text in zip(targets, anchors, trees, texts, strict=True)
        ]
        passes = run_together(asks, (0, 2, 3))
        for lane, (tokens, parents) in enumerate(trees):
            before = (*texts[lane], anchors[lane])
            for node in range(-1, len(tokens)):
                hold(model, (*before, *(tokens[one] for one in above(node, parents))), passes[lane], node + 1)
            kept = above(source.randrange(-1, len(tokens)), parents)
            targets[lane].keep((0, *(node + 1 for node in kept)))
            texts[lane] = (*before, *(tokens[node] for node in kept))
    for target, text in zip(targets, texts, strict=True):
        assert target.kept == len(text)
        assert target.kv(2)[0].shape == (model.config.num_key_value_heads, len(text), 4)


def hold(model: Any, text: Tokens, passed: Any, row: int) -> None:
    """A row of a pass against the last one of a text that is run by itself."""
    with Float64():
        whole = model(torch.tensor([text]), output_hidden_states=True, use_cache=False)
    assert torch.allclose(passed.logits[row], whole.logits[0, -1], rtol=0, atol=1e-9)
    for tap in (0, 2, 3):
        assert torch.allclose(passed.taps[tap][row], whole.hidden_states[tap][0, -1], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("said", "token"), [(None, None), (4, 4), ([7, 4], 7), ([], None), (0, 0)])
def test_the_end_of_text_that_a_target_lends(said: Any, token: int | None) -> None:
    """Kills an end that is the last of several, or none where its number is 0: DART grows it where nothing else is."""
    target = TransformersTarget(made("Gemma 3", Random(1), eos_token_id=said))
    assert target.lends.eos() == token
    assert target.lends.positions() == 64
    store = target.lends.stores()
    assert {kind: (one.layer, one.head_dim, one.key_value_heads) for kind, one in store.items()} == {
        "sliding_attention": (2, 4, 2)
    }
