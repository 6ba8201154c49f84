"""The Gemma 4 assistant's files: every tensor counts, every way to write a config, damage named in one line."""

import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, damaged
from properties.helpers.checkpoints.gemma4_example import (
    CONFIG,
    FIXTURES,
    FULL,
    GEMMA,
    TARGET,
    assistant,
    outputs,
    shape_of,
)
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.gemma4_assistant import ORDERING, backbone, table
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.drafters.gemma4_assistant import SLIDING, Gemma4Assistant
from refengine.decoder.networks.rope import Linear, Proportional, Rope
from refengine.errors import BadInput


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed() -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    drafter = assistant()
    tensors, right = dict(drafter.w.tensors), outputs(drafter)

    def moved(changed: dict[str, Tensor]) -> float:
        other = Gemma4Assistant(drafter.shape, tensors | changed, drafter.backbone, 2)
        return float((outputs(other) - right).abs().max())

    for name, x in tensors.items():
        assert moved({name: torch.zeros_like(x)}) > 1e-4, name
    for a, b in itertools.combinations(tensors, 2):
        if tensors[a].shape == tensors[b].shape and tensors[a].dtype == tensors[b].dtype:
            assert moved({a: tensors[b], b: tensors[a]}) > 1e-4, (a, b)


def test_an_untied_file_has_a_head_of_its_own(tmp_path: Path) -> None:
    """Kills a reader that scores with the embeddings although the file has a head. (They then serve for nothing.)"""
    copy = copied(tmp_path, lambda t, c: (t.update({"lm_head.weight": t["model.norm.weight"].expand(8, 16) * 2.0}),
                                          c.update(tie_word_embeddings=False)))  # fmt: skip
    untied = load_drafter(copy, TARGET, gamma=2)
    assert float((outputs(untied) - outputs(assistant())).abs().max()) > 1e-2
    tensors = {**untied.w.tensors, "model.embed_tokens.weight": torch.zeros(8, 16).double()}
    assert torch.equal(outputs(Gemma4Assistant(untied.shape, tensors, untied.backbone, 2)), outputs(untied))


def copied(tmp_path: Path, change: Edit) -> Path:
    return damaged(GEMMA / "assistant", tmp_path / "assistant", change)


def in_text(**fields: Any) -> Edit:
    return lambda t, c: c["text_config"].update(fields)


NORM = "model.layers.0.self_attn.q_norm.weight"
DAMAGE: dict[str, tuple[Callable[[dict[str, Tensor], dict[str, Any]], object], str]] = {
    "missing": (lambda t, c: t.pop("post_projection.weight"), "tensor post_projection.weight is missing"),
    "extra": (
        lambda t, c: t.update({"model.layers.0.self_attn.k_proj.weight": torch.zeros(8, 16)}),
        "tensor model.layers.0.self_attn.k_proj.weight is in the file",
    ),
    "head of a tied file": (
        lambda t, c: t.update({"lm_head.weight": torch.zeros(8, 16)}),
        "tensor lm_head.weight is in the file",
    ),
    "misshapen": (lambda t, c: t.update({NORM: torch.ones(16)}), r"q_norm.weight has shape \[16\], .* \[8\]"),
    "wrong dtype": (lambda t, c: t.update({NORM: t[NORM].half()}), "dtype float16, expected float32"),
    "ordering in floats": (lambda t, c: t.update({ORDERING: torch.ones(8)}), "has dtype float32, expected int64"),
    "ordering outside": (lambda t, c: t[ORDERING].add_(1), "names tokens outside the vocabulary of 8"),
    "ordering no permutation": (
        lambda t, c: t[ORDERING].copy_(t[ORDERING].sort().values.index_fill(0, torch.tensor([5]), 2)),
        "no permutation: it names token 2 twice, and token 5 never",
    ),
    "ordering below": (lambda t, c: t[ORDERING].sub_(1), "names tokens outside the vocabulary of 8"),
    "odd width": (in_text(head_dim=7), "head_dim of sliding_attention is 7, and rotary embeddings need an even one"),
    "plain head": (lambda t, c: c.update(use_ordered_embeddings=False), "masked_embedding.*and 1 more"),
    "other centroids": (lambda t, c: c.update(num_centroids=2), r"has shape \[4, 16\], the config asks for \[2, 16\]"),
    "odd centroids": (lambda t, c: c.update(num_centroids=3), "8 tokens do not divide over 3 centroids"),
    "too many picked": (lambda t, c: c.update(centroid_intermediate_top_k=5), "top_k is 5 of 4 centroids"),
    "untied": (lambda t, c: c.update(tie_word_embeddings=False), "tensor lm_head.weight is missing"),
    "biased": (in_text(attention_bias=True), "self_attn.q_proj.bias is missing"),
    "no text config": (lambda t, c: c.pop("text_config"), "text_config is None, expected an object"),
    "layers that do not share": (in_text(num_kv_shared_layers=1), "num_kv_shared_layers is 1, and all 2 layers"),
    "per-layer inputs": (in_text(hidden_size_per_layer_input=4), "hidden_size_per_layer_input is 4"),
    "experts": (in_text(enable_moe_block=True), "enable_moe_block is True"),
    "double MLP": (in_text(use_double_wide_mlp=True), "use_double_wide_mlp is True"),
    "both directions": (in_text(use_bidirectional_attention="all"), "use_bidirectional_attention is 'all'"),
    "other gate": (in_text(hidden_activation="silu"), "hidden_activation is 'silu'"),
    "layer types": (in_text(layer_types=[FULL]), "layer_types has 1 entries for num_hidden_layers 2"),
    "unknown type": (in_text(layer_types=["chunked_attention", FULL]), "layer_types has 'chunked_attention'"),
    "sliding at the end": (in_text(layer_types=[FULL, SLIDING]), "layer_types ends with 'sliding_attention'"),
    "other width": (in_text(per_layer_config={}), r"q_proj.weight has shape \[32, 16\], .* \[16, 16\]"),
    "widths within a type": (
        in_text(layer_types=[FULL, FULL]),
        "gives the layers of type full_attention different sizes",
    ),
    "unknown override": (
        in_text(per_layer_config={"1": {"intermediate_size": 9}}),
        "layer 1 has intermediate_size, which is not implemented",
    ),
    "odd heads": (in_text(num_key_value_heads=3), "2 heads do not divide over 3 key/value heads"),
    "other keys": (
        in_text(num_key_value_heads=2, per_layer_config={"1": {"head_dim": 16, "num_key_value_heads": 1}}),
        "num_key_value_heads of sliding_attention is 2, and the target has 1",
    ),
    "no rope of a type": (in_text(rope_parameters={FULL: {"rope_theta": 1e4}}), "no entry for sliding_attention"),
    "scaled rope": (
        in_text(rope_parameters={k: {"rope_type": "longrope", "rope_theta": 1e4} for k in (FULL, SLIDING)}),
        "rope_type is 'longrope'",
    ),
    "rope without a base": (in_text(rope_parameters={FULL: {}, SLIDING: {}}), "rope_theta is missing"),
    "another target's width": (
        lambda t, c: c.update(backbone_hidden_size=18),
        r"pre_projection.weight has shape \[16, 32\], the config asks for \[16, 36\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    """Kills a loader that fills gaps, ignores leftovers, casts, or trusts a config against the tensors."""
    change, message = DAMAGE[name]
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(copied(tmp_path, change), TARGET)
    assert "\n" not in str(raised.value)


def test_the_unified_assistant_has_the_same_layout(tmp_path: Path) -> None:
    """Kills a loader that knows the 12B assistant's class only as a causal language model."""
    copy = copied(tmp_path, lambda t, c: c.update(architectures=["Gemma4UnifiedAssistantForCausalLM"]))
    unified = load_drafter(copy, TARGET)
    assert isinstance(unified, Gemma4Assistant)
    assert torch.equal(outputs(unified), outputs(assistant()))


def test_another_kind_of_target_is_refused() -> None:
    """Kills an assistant that reads the keys of a layer which is no layer of its type."""
    qwen = load_target(FIXTURES / "tiny" / "target", torch.float64)
    with pytest.raises(BadInput, match="backbone_hidden_size is 16, and the target has 32"):
        load_drafter(GEMMA / "assistant", qwen)
    shape = dataclasses.replace(shape_of(per_layer_config={}), backbone_hidden_size=32)
    with pytest.raises(BadInput, match="of type sliding_attention read the target's, and the target has none"):
        backbone(Config("config.json", CONFIG), shape, qwen)


GLOBAL = {"per_layer_config": "absent", "global_head_dim": 16}


@pytest.mark.parametrize(
    "text",
    [
        {"per_layer_config": {"01": {"head_dim": 16}}},
        GLOBAL,
        {**GLOBAL, "num_global_key_value_heads": 2},  # read only where keys and values are one projection
        {**GLOBAL, "num_global_key_value_heads": 1, "attention_k_eq_v": True},
        {"num_kv_shared_layers": 0},
        {"layer_types": "absent", "num_hidden_layers": 2},
        {"rope_parameters": None},
        {"use_bidirectional_attention": "vision"},
        {"final_logit_softcapping": 30.0},  # the released class never applies it
    ],
)  # fmt: skip
def test_every_way_to_write_the_same_config(text: dict[str, Any]) -> None:
    """Kills a default that is not the released class's: of head widths, groups, layer types, rotary embeddings."""
    assert shape_of(**text) == shape_of()


def test_rotary_embeddings_differ_by_layer_type() -> None:
    """Kills a table that both types share, and strays that count."""
    heads = shape_of().heads
    assert heads[SLIDING].rope == Rope(1e4)
    assert heads[FULL].rope == Rope(1e6, Proportional(0.25))
    linear = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
    mixed = shape_of(rope_parameters={FULL: linear, SLIDING: {"rope_theta": 5e3}, "rope_theta": None})
    assert [mixed.heads[kind].rope for kind in (FULL, SLIDING)] == [Rope(1e4, Linear(4.0)), Rope(5e3)]


def test_the_schema_has_the_tensors_of_the_layout_and_no_others() -> None:
    """Kills a reader that has outgrown the statement of what is known about the layout."""
    schema = json.loads((FIXTURES / "schemas" / "gemma4_assistant.json").read_text())
    untied = table(dataclasses.replace(shape_of(), tie_word_embeddings=False, attention_bias=True))
    assert {re.sub(r"\.\d+\.", ".N.", name) for name in untied} == schema["tensors"].keys()
