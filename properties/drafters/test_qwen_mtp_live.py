"""Qwen's multi-token prediction against transformers' own layers, which is what a module is made of, on files that
transformers wrote: other sizes, tied embeddings, a vision model around the text, experts in both packings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)
from transformers.models.qwen3_5 import modeling_qwen3_5 as dense
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as moe
from transformers.models.qwen3_next import modeling_qwen3_next as qwen3_next

from refengine.decoder import load_drafter, load_target
from refengine.decoder.loop import begin
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence

COMMON: dict[str, Any] = {
    "vocab_size": 23, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 4, "linear_value_head_dim": 4,
    "initializer_range": 0.3, "max_position_embeddings": 64,
}  # fmt: skip
VISION = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "num_position_embeddings": 16}
DRAFTED, PREFIX = (5, 0, 17), (3, 22, 9, 9, 1, 14, 0, 7)


def rope(part: float, theta: float = 1e4) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part}


@dataclass
class Peer:
    """A target of transformers, and a module of its layers under the released names."""

    model: Any
    config: Any  # of the text
    module: nn.ModuleDict
    turn: nn.Module

    def tensors(self, fused: bool) -> dict[str, Tensor]:
        found = {f"mtp.{name}": x.clone() for name, x in self.module.state_dict().items()}
        for name in [name for name in found if ".experts." in name and not fused]:
            for i, expert in enumerate(found.pop(name)):
                parts = ("gate_proj", "up_proj") if name.endswith("gate_up_proj") else ("down_proj",)
                for part, x in zip(parts, expert.chunk(len(parts)), strict=True):
                    found[f"mtp.layers.0.mlp.experts.{i}.{part}.weight"] = x.clone()
        return {name.replace("mtp.layer.", "mtp.layers.0."): x for name, x in found.items()}

    def rows(self, tokens: Tensor, hidden: Tensor) -> Tensor:
        """What every row puts out, from scratch."""
        embedded, count = self.model.get_input_embeddings()(tokens), len(tokens)
        normed = (self.module["pre_fc_norm_embedding"](embedded), self.module["pre_fc_norm_hidden"](hidden))
        x = self.module["fc"](torch.cat(normed, -1))[None]
        places = torch.arange(count)[None]
        angles = self.turn(x, places if self.config.model_type == "qwen3_next" else places.expand(3, 1, -1))
        mask = torch.full((count, count), -1e30).triu(1)[None, None]
        out = self.module["layer"](x, position_embeddings=angles, attention_mask=mask, position_ids=places)
        return self.module["norm"](out[0])


def peer(model: Any, config: Any, layers: tuple[Any, Any, Any]) -> Peer:
    layer, norm, rotary = layers
    config._attn_implementation = config._experts_implementation = "eager"
    hidden, eps = config.hidden_size, config.rms_norm_eps
    norms = {name: norm(hidden, eps=eps) for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")}
    module = nn.ModuleDict({"fc": nn.Linear(2 * hidden, hidden, bias=False), "layer": layer(config, 1), **norms})
    for x in module.parameters():
        x.data = torch.randn_like(x) * (0.3 if x.dim() == 1 else x.shape[-1] ** -0.5)
    return Peer(model.eval(), config, module.eval().requires_grad_(False), rotary(config))


def next_moe() -> Peer:
    """Three query heads to a key head, biases, a router that does not normalise, a fine rotation."""
    config = Qwen3NextConfig(
        **COMMON, hidden_size=20, num_attention_heads=6, num_key_value_heads=2, head_dim=8, num_experts=5,
        num_experts_per_tok=3, moe_intermediate_size=6, shared_expert_intermediate_size=10, norm_topk_prob=False,
        attention_bias=True, rope_parameters=rope(0.75, 500.0),
    )  # fmt: skip
    layers = qwen3_next.Qwen3NextDecoderLayer, qwen3_next.Qwen3NextRMSNorm, qwen3_next.Qwen3NextRotaryEmbedding
    return peer(Qwen3NextForCausalLM(config), config, layers)


def next_dense() -> Peer:
    """Without experts, one head of each kind, tied, everything turns."""
    config = Qwen3NextConfig(
        **COMMON, hidden_size=12, intermediate_size=20, num_attention_heads=1, num_key_value_heads=1, head_dim=4,
        num_experts=0, tie_word_embeddings=True, rope_parameters=rope(1.0),
    )  # fmt: skip
    layers = qwen3_next.Qwen3NextDecoderLayer, qwen3_next.Qwen3NextRMSNorm, qwen3_next.Qwen3NextRotaryEmbedding
    return peer(Qwen3NextForCausalLM(config), config, layers)


def vision_dense() -> Peer:
    """Qwen3.5 as released: a vision model around it, `text_config`, `model.language_model.`, tied."""
    text = {
        **COMMON, "hidden_size": 16, "intermediate_size": 18, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "rope_parameters": {**rope(0.5), "mrope_interleaved": True, "mrope_section": [2, 1, 1]},
        "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False, "tie_word_embeddings": True,
    }  # fmt: skip
    config = Qwen3_5Config(text_config=text, vision_config=VISION | {"out_hidden_size": 16}, tie_word_embeddings=True)
    layers = dense.Qwen3_5DecoderLayer, dense.Qwen3_5RMSNorm, dense.Qwen3_5TextRotaryEmbedding
    return peer(Qwen3_5ForConditionalGeneration(config), config.text_config, layers)


def moe_text() -> Peer:
    """Qwen3.5's mixture, whose router always normalises."""
    config = Qwen3_5MoeTextConfig(
        **COMMON, hidden_size=16, num_attention_heads=2, num_key_value_heads=2, head_dim=12, num_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=4, rope_parameters=rope(0.5),
    )  # fmt: skip
    layers = moe.Qwen3_5MoeDecoderLayer, moe.Qwen3_5MoeRMSNorm, moe.Qwen3_5MoeTextRotaryEmbedding
    return peer(Qwen3_5MoeForCausalLM(config), config, layers)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "single"])
@pytest.mark.parametrize("make", [next_moe, next_dense, vision_dense, moe_text])
def test_logits_are_those_of_transformers_layers(tmp_path: Path, make: Any, fused: bool) -> None:
    """Kills a size taken for another, a rotation of the wrong part, a bias left out, a router that normalises or does
    not, a config or a prefix that is looked for in the wrong place, a head that is not the tied embedding."""
    torch.manual_seed(4)
    theirs = make()
    for name, x in theirs.model.named_parameters():
        x.data += 0.2 * torch.randn_like(x) if name.endswith("norm.weight") else 0.0
    theirs.model.save_pretrained(tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    save_file(load_file(file) | theirs.tensors(fused), file, metadata={"format": "pt"})
    target = load_target(tmp_path / "m", torch.float32)
    drafter = load_drafter(tmp_path / "m", target)
    assert isinstance(drafter, FeatureRecurrence)
    drafter.start(PREFIX[:-1], begin(target, PREFIX[:-1], drafter.taps))
    draft = Draft(drafter.network, drafter.cache, drafter.length, PREFIX[-1], drafter.feature)
    ours = [draft.first, *(draft.grow((token,), (place,))[0] for place, token in enumerate(DRAFTED))]
    text = getattr(theirs.model.model, "language_model", theirs.model.model)
    with torch.no_grad():
        hidden = text(input_ids=torch.tensor([PREFIX[:-1]]), use_cache=False).last_hidden_state[0]
        tokens, wanted = torch.tensor(PREFIX[1:]), []
        for token in (*DRAFTED, 0):
            out = theirs.rows(tokens, hidden)[-1:]
            wanted.append(theirs.model.lm_head(out)[0])
            hidden, tokens = torch.cat((hidden, out)), torch.cat((tokens, torch.tensor([token])))
    right = torch.stack(wanted)
    assert float((torch.stack(ours) - right).abs().max()) <= 1e-5 * max(1.0, float(right.std()))
