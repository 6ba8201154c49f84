"""Every tensor of a DeepSeek-V3 checkpoint with its shape: the target's layers, and those that are modules."""

from typing import TypeAlias

from torch import dtype, float32

from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.drafters.deepseek_mtp import Shape

LAYOUTS = ()  # it serves others
Names: TypeAlias = dict[str, tuple[int, ...] | tuple[tuple[int, ...], dtype]]


def prefix(layer: int) -> str:
    return f"model.layers.{layer}."


def table(s: Shape, config: Config) -> Table:
    """The whole file. The first layers of the target have no experts; a module always has them."""
    embedding, wide = (s.vocab_size, s.hidden_size), s.hidden_size
    names: Names = {"model.embed_tokens.weight": embedding, "model.norm.weight": (wide,)}
    if not config.flag("tie_word_embeddings", default=False):
        names["lm_head.weight"] = embedding
    dense = min(config.integer("first_k_dense_replace", least=0), s.num_hidden_layers)
    plain = _gated("mlp", config.integer("intermediate_size"), wide) if dense else {}
    for layer in range(s.num_hidden_layers):
        within = _around(s) | (plain if layer < dense else _experts(s))
        names |= {prefix(layer) + name: size for name, size in within.items()}
    own: Names = {
        "embed_tokens.weight": embedding,
        "eh_proj.weight": (wide, 2 * wide),
        "shared_head.head.weight": embedding,
        **{f"{norm}.weight": (wide,) for norm in ("enorm", "hnorm", "shared_head.norm")},
    }
    for depth in range(s.num_nextn_predict_layers):
        within = own | _around(s) | _experts(s)
        names |= {prefix(s.num_hidden_layers + depth) + name: size for name, size in within.items()}
    return names


def _around(s: Shape) -> Names:
    """Norms and attention."""
    h, wide = s.heads, s.hidden_size
    queries = h.num_attention_heads * (h.qk_nope_head_dim + h.qk_rope_head_dim)
    biased = {
        "kv_a_proj_with_mqa": (h.kv_lora_rank + h.qk_rope_head_dim, wide),
        "o_proj": (wide, h.num_attention_heads * h.v_head_dim),
    }
    names: Names = {
        "kv_a_layernorm.weight": (h.kv_lora_rank,),
        "kv_b_proj.weight": (h.num_attention_heads * (h.qk_nope_head_dim + h.v_head_dim), h.kv_lora_rank),
    }
    if h.q_lora_rank is None:
        names["q_proj.weight"] = (queries, wide)
    else:
        biased["q_a_proj"] = (h.q_lora_rank, wide)
        names |= {"q_a_layernorm.weight": (h.q_lora_rank,), "q_b_proj.weight": (queries, h.q_lora_rank)}
    names |= {f"{name}.weight": size for name, size in biased.items()}
    if s.attention_bias:
        names |= {f"{name}.bias": size[:1] for name, size in biased.items()}
    norms = {f"{norm}.weight": (wide,) for norm in ("input_layernorm", "post_attention_layernorm")}
    return norms | {f"self_attn.{name}": size for name, size in names.items()}


def _experts(s: Shape) -> Names:
    experts, wide = s.routing.n_routed_experts, s.hidden_size
    names: Names = {
        "mlp.gate.weight": (experts, wide),
        "mlp.gate.e_score_correction_bias": ((experts,), float32),  # in a bfloat16 checkpoint too
    }
    for expert in range(experts):
        names |= _gated(f"mlp.experts.{expert}", s.moe_intermediate_size, wide)
    return names | _gated("mlp.shared_experts", s.moe_intermediate_size * s.n_shared_experts, wide)


def _gated(name: str, inner: int, wide: int) -> Names:
    up: Names = {f"{name}.{which}_proj.weight": (inner, wide) for which in ("gate", "up")}
    return up | {f"{name}.down_proj.weight": (wide, inner)}
