"""The layout of DeepSeek-V3 with prediction modules: every tensor matters, and whatever is wrong is named."""

import itertools
from pathlib import Path

import pytest
import torch
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, damaged
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.deepseek_mtp import read
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.drafters.ar import AR
from refengine.decoder.drafters.deepseek_mtp import Module, Shape
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TINY, GOLDEN = FIXTURES / "deepseek", FIXTURES / "golden"
TARGET = load_target(TINY / "mtp", torch.float64)


def outputs(shape: Shape, tensors: dict[str, Tensor], hidden: Tensor) -> Tensor:
    """Logits of all rows of both modules over a text that goes through every expert."""
    tokens, found = torch.arange(3, 3 + len(hidden)), []
    for depth in range(shape.num_nextn_predict_layers):
        module = Module(shape, tensors, depth)
        sees = torch.ones(len(hidden), len(hidden)).tril().bool()
        hidden, _ = module.rows(tokens, hidden, torch.arange(len(hidden)), module.empty(), sees)
        found.append(module.logits(hidden))
    return torch.stack(found)


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed() -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    folder = GOLDEN / "hf_dsv3_mtp2_A" / "target"
    shape, everything = read(Checkpoint(folder))
    tensors = {name: x for name, x in everything.items() if name.startswith(("model.layers.4.", "model.layers.5."))}
    hidden = torch.randn(60, 40, generator=torch.Generator().manual_seed(0))
    right = outputs(shape, tensors, hidden)
    for name, tensor in tensors.items():
        zeroed = outputs(shape, tensors | {name: torch.zeros_like(tensor)}, hidden)
        assert float((zeroed - right).abs().max()) > 1e-3, name
    for a, b in itertools.combinations([name for name in tensors if ".layers.4." in name], 2):
        if tensors[a].shape == tensors[b].shape:
            swapped = outputs(shape, tensors | {a: tensors[b], b: tensors[a]}, hidden)
            assert float((swapped - right).abs().max()) > 1e-3, (a, b)


P = "model.layers.1."  # the module
DAMAGE: dict[str, tuple[Edit, str]] = {
    "missing": (lambda t, c: t.pop(f"{P}eh_proj.weight"), "tensor model.layers.1.eh_proj.weight is missing"),
    "missing copy": (lambda t, c: t.pop(f"{P}embed_tokens.weight"), "layers.1.embed_tokens.weight is missing"),
    "extra": (lambda t, c: t.update({f"{P}stray": torch.zeros(2)}), "tensor model.layers.1.stray is in the file"),
    "extra elsewhere": (lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "a module too many": (
        lambda t, c: t.update({"model.layers.2.enorm.weight": torch.ones(32)}),
        "tensor model.layers.2.enorm.weight is in the file",
    ),
    "a module too few": (
        lambda t, c: c.update(num_nextn_predict_layers=2),
        "tensor model.layers.2.embed_tokens.weight is missing",
    ),
    "misshapen": (
        lambda t, c: t.update({f"{P}enorm.weight": torch.ones(31)}),
        r"enorm.weight has shape \[31\], the config asks for \[32\]",
    ),
    "other precision": (
        lambda t, c: t.update({f"{P}hnorm.weight": t[f"{P}hnorm.weight"].bfloat16()}),
        "hnorm.weight has dtype bfloat16, expected float32",
    ),
    "integers": (
        lambda t, c: t.update({f"{P}mlp.gate.e_score_correction_bias": torch.zeros(4).long()}),
        "e_score_correction_bias has dtype int64, expected float32",
    ),
    "no copy of the embedding": (
        lambda t, c: t[f"{P}embed_tokens.weight"].mul_(2),
        r"layers.1.embed_tokens.weight differs from the target's, of which it is a copy",
    ),
    "copies swapped": (
        lambda t, c: t.update({f"{P}shared_head.head.weight": t[f"{P}embed_tokens.weight"].clone()}),
        r"layers.1.shared_head.head.weight differs from the target's, of which it is a copy",
    ),
    "two counts": (
        lambda t, c: c.update(num_mtp_layers=2),
        "num_nextn_predict_layers is 1, but num_mtp_layers is 2",
    ),
    "no count": (lambda t, c: c.pop("num_nextn_predict_layers"), "num_nextn_predict_layers is 0 or missing"),
    "other rank": (lambda t, c: c.update(kv_lora_rank=8), r"kv_a_layernorm.weight has shape \[12\]"),
    "no rank": (lambda t, c: c.update(q_lora_rank=None), "self_attn.q_proj.weight is missing"),
    "bias promised": (lambda t, c: c.update(attention_bias=True), "_proj.*bias is missing"),
    "more experts": (lambda t, c: c.update(n_routed_experts=8), r"mlp.gate.weight has shape \[4, 32\]"),
    "more shared experts": (lambda t, c: c.update(n_shared_experts=2), r"shared_experts.gate_proj.weight has shape"),
    "uneven groups": (lambda t, c: c.update(n_group=3), "4 experts do not divide into 3 groups"),
    "groups of one": (lambda t, c: c.update(n_group=4), "4 experts do not divide into 4 groups of two or more"),
    "too many chosen": (lambda t, c: c.update(num_experts_per_tok=3), "3 experts cannot be chosen from 1 of 2 groups"),
    "softmax": (lambda t, c: c.update(scoring_func="softmax"), "scoring_func is 'softmax'"),
    "another choice": (lambda t, c: c.update(topk_method="greedy"), "topk_method is 'greedy'"),
    "dense between": (lambda t, c: c.update(moe_layer_freq=2), "moe_layer_freq is 2"),
    "grouped heads": (lambda t, c: c.update(num_key_value_heads=1), "num_key_value_heads is 1"),
    "another activation": (lambda t, c: c.update(hidden_act="gelu"), "hidden_act is 'gelu'"),
    "eight bits": (
        lambda t, c: c.update(quantization_config={"quant_method": "fp8"}),
        "quantised weights are not read here",
    ),
    "another stretch": (
        lambda t, c: c.update(rope_parameters={"rope_type": "longrope", "rope_theta": 1e4}),
        "rope_type is 'longrope'",
    ),
    "a layer more": (lambda t, c: c.update(num_hidden_layers=2), "tensor model.layers.1.eh_proj.weight has no place"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads, casts or guesses around what a checkpoint gets wrong."""
    change, message = DAMAGE[damage]
    folder = damaged(TINY / "mtp", tmp_path / "drafter", change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, TARGET)
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


@pytest.mark.parametrize(
    "name", ["stray", "model.layers.2.enorm.weight", "model.layers.61.enorm.weight", "model.layers.0.x"]
)
def test_a_target_has_a_place_for_its_modules_and_nothing_else(tmp_path: Path, name: str) -> None:
    """Kills a stray tensor that hides behind the modules, which transformers does not load with the target either."""
    folder = damaged(TINY / "mtp", tmp_path / "target", lambda t, c: t.update({name: torch.ones(32)}))
    with pytest.raises(BadInput, match=f"tensor {name} is in the file, and the config has no place for it"):
        load_target(folder)


def test_without_modules_it_is_a_separate_draft_model(tmp_path: Path) -> None:
    """Kills a reader that believes the count alone: transformers writes 1 for every DeepSeek-V3."""
    folder = damaged(
        TINY / "mtp", tmp_path / "model", lambda t, c: [t.pop(name) for name in list(t) if name.startswith(P)]
    )
    assert isinstance(load_drafter(folder, TARGET), AR)
