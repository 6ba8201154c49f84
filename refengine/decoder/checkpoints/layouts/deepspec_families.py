"""What DeepSpec's drafters inherit from the family of their target: the layers of Qwen3, or those of Gemma 4."""

from dataclasses import dataclass

from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.networks.rope import Rope

LAYOUTS = ()  # it serves others


@dataclass(frozen=True)
class Family:
    """The fields of a config that one family names or means differently from the other."""

    num_key_value_heads: int
    head_dim: int
    rope: Rope
    gemma4: bool = False
    attention_k_eq_v: bool = False
    final_logit_softcapping: float | None = None
    read: tuple[str, ...] = ()  # of the switches that are refused where they are not read


def read_qwen3(config: Config) -> Family:
    config.one_of("hidden_act", "silu")
    return Family(config.integer("num_key_value_heads"), config.integer("head_dim"), read_rope(config))


def read_gemma4(config: Config) -> Family:
    """Gemma 4's drafters are made of its full-attention layers, whose heads are the "global" ones."""
    config.one_of("hidden_activation", "gelu_pytorch_tanh")
    if config.flag("enable_moe_block", default=False):
        config.refuse("enable_moe_block is true, and experts are not part of this layout")
    if config.fields.get("hidden_size_per_layer_input"):
        config.refuse("hidden_size_per_layer_input is not 0, and inputs per layer are not part of this layout")
    if config.flag("use_double_wide_mlp", default=False) and config.fields.get("num_kv_shared_layers"):
        config.refuse("use_double_wide_mlp is true with shared layers, and wider layers are not part of this layout")
    shared = config.flag("attention_k_eq_v", default=False)
    capped = config.fields.get("final_logit_softcapping") is not None
    return Family(
        num_key_value_heads=config.integer("num_global_key_value_heads" if shared else "num_key_value_heads"),
        head_dim=config.integer("global_head_dim"),
        rope=read_rope(config, "full_attention"),
        gemma4=True,
        attention_k_eq_v=shared,
        final_logit_softcapping=config.number("final_logit_softcapping") if capped else None,
        read=("final_logit_softcapping", "hidden_activation"),
    )


# The norms that a Gemma 4 layer has and a Qwen3 layer does not.
GEMMA4_NORMS = ("pre_feedforward_layernorm", "post_feedforward_layernorm")
