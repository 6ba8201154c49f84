"""The tensors of a block backbone (DFlash, DSpark) as every release but transformers' names them, and its sizes."""

from refengine.decoder.checkpoints.layouts.deepspec_families import GEMMA4_NORMS
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.networks.block_backbone import Shape

LAYOUTS = ()  # it serves others


def refuse_contradictions(config: Config, s: Shape) -> None:
    """Sizes that no backbone can have. Raises BadInput."""
    config.refuse_uneven(s.num_attention_heads, s.num_key_value_heads)
    if s.head_dim % 2:
        config.refuse(f"head_dim is {s.head_dim}, and heads of odd width cannot be rotated")
    if s.mask_token_id >= s.vocab_size:
        config.refuse(f"mask_token_id {s.mask_token_id} is outside the vocabulary of {s.vocab_size} tokens")


def table(s: Shape) -> dict[str, tuple[int, ...]]:
    """Every tensor but embedding and head, with its shape."""
    hidden, inner = s.hidden_size, s.intermediate_size
    q, kv = s.num_attention_heads * s.head_dim, s.num_key_value_heads * s.head_dim
    attention = {"q_proj": (q, hidden), "k_proj": (kv, hidden), "v_proj": (kv, hidden), "o_proj": (hidden, q)}
    if s.attention_k_eq_v:
        del attention["v_proj"]
    norms = ("input_layernorm", "post_attention_layernorm", *(GEMMA4_NORMS if s.gemma4 else ()))
    names: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, len(s.taps) * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for i in range(s.num_hidden_layers):
        layer = f"layers.{i}."
        names |= {f"{layer}self_attn.{name}.weight": shape for name, shape in attention.items()}
        if s.attention_bias:
            names |= {f"{layer}self_attn.{name}.bias": shape[:1] for name, shape in attention.items()}
        names |= {f"{layer}self_attn.{name}.weight": (s.head_dim,) for name in ("q_norm", "k_norm")}
        names |= {f"{layer}mlp.{name}.weight": (inner, hidden) for name in ("gate_proj", "up_proj")}
        names[f"{layer}mlp.down_proj.weight"] = (hidden, inner)
        names |= {f"{layer}{name}.weight": (hidden,) for name in norms}
        if s.gemma4:
            names[f"{layer}layer_scalar"] = (1,)
    return names
