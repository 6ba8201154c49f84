"""The released layout of DSpark and of DeepSpec's DFlash (DeepSpec afdfa7c): names as in the code, no prefix.

Embedding and head are stored with the drafter (frozen copies of the target's); there is no draft vocabulary.
"""

from pathlib import Path

from refengine.decoder.checkpoints.config import Config, read_config
from refengine.decoder.checkpoints.tensors import Table, read_tensors
from refengine.decoder.drafters.dspark import DSpark, Shape


def load_dspark(folder: Path, threshold: float = 0.0) -> DSpark:
    """A DSpark drafter from its released folder, in the dtype of the file. Raises BadInput."""
    config = read_config(folder)
    shape = read_shape(config)
    return DSpark(shape, read_tensors(folder, table(shape), config), threshold)


def read_shape(config: Config) -> Shape:
    """The config's sizes, contradictions refused."""
    config.one_of("hidden_act", "silu")
    rank = config.integer("markov_rank", least=0)
    confidence = config.flag("enable_confidence_head")
    with_markov = config.flag("confidence_head_with_markov") if confidence else False
    shape = Shape(
        vocab_size=config.integer("vocab_size"),
        hidden_size=config.integer("hidden_size"),
        intermediate_size=config.integer("intermediate_size"),
        num_hidden_layers=config.integer("num_hidden_layers"),
        num_attention_heads=config.integer("num_attention_heads"),
        num_key_value_heads=config.integer("num_key_value_heads"),
        head_dim=config.integer("head_dim"),
        attention_bias=config.flag("attention_bias", default=False),
        rms_norm_eps=config.number("rms_norm_eps"),
        rope_theta=config.rope_theta(),
        num_target_layers=config.integer("num_target_layers"),
        target_layer_ids=config.integers("target_layer_ids"),
        block_size=config.integer("block_size"),
        mask_token_id=config.integer("mask_token_id", least=0),
        markov_rank=rank,
        markov_head_type=config.one_of("markov_head_type", "vanilla", "gated", "rnn") if rank else "",
        enable_confidence_head=confidence,
        confidence_head_with_markov=with_markov,
    )
    _refuse_contradictions(config, shape)
    return shape


def _refuse_contradictions(config: Config, s: Shape) -> None:
    types = config.fields.get("layer_types") or ["full_attention"] * s.num_hidden_layers
    if len(types) != s.num_hidden_layers:
        config.refuse(f"layer_types has {len(types)} entries for num_hidden_layers {s.num_hidden_layers}")
    if set(types) != {"full_attention"} or config.flag("use_sliding_window", default=False):
        config.refuse("sliding-window layers are not part of this layout")
    if config.flag("tie_word_embeddings", default=False):
        config.refuse("tie_word_embeddings is true, and this layout stores embedding and head apart")
    if s.num_attention_heads % s.num_key_value_heads:
        config.refuse(f"{s.num_attention_heads} heads do not divide over {s.num_key_value_heads} key/value heads")
    if s.mask_token_id >= s.vocab_size:
        config.refuse(f"mask_token_id {s.mask_token_id} is outside the vocabulary of {s.vocab_size} tokens")
    if s.confidence_head_with_markov and not s.markov_rank:
        config.refuse("confidence_head_with_markov is true, and markov_rank is 0")
    for layer in s.target_layer_ids:
        # hs[L] of transformers is normed, and training tapped the raw output: the last layer cannot be served.
        if not -1 <= layer < s.num_target_layers - 1:
            config.refuse(f"target_layer_ids has {layer}, outside -1 .. {s.num_target_layers - 2}")


def table(s: Shape) -> Table:
    """Every tensor of the file, with its shape."""
    hidden, inner = s.hidden_size, s.intermediate_size
    q, kv = s.num_attention_heads * s.head_dim, s.num_key_value_heads * s.head_dim
    names: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (s.vocab_size, hidden),
        "lm_head.weight": (s.vocab_size, hidden),
        "fc.weight": (hidden, len(s.target_layer_ids) * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for i in range(s.num_hidden_layers):
        layer = f"layers.{i}."
        for name, shape in {"q": (q, hidden), "k": (kv, hidden), "v": (kv, hidden), "o": (hidden, q)}.items():
            names[f"{layer}self_attn.{name}_proj.weight"] = shape
            if s.attention_bias:
                names[f"{layer}self_attn.{name}_proj.bias"] = shape[:1]
        names |= {f"{layer}self_attn.{name}.weight": (s.head_dim,) for name in ("q_norm", "k_norm")}
        names |= {f"{layer}mlp.{name}.weight": (inner, hidden) for name in ("gate_proj", "up_proj")}
        names[f"{layer}mlp.down_proj.weight"] = (hidden, inner)
        names |= {f"{layer}{name}.weight": (hidden,) for name in ("input_layernorm", "post_attention_layernorm")}
    return names | _heads(s)


def _heads(s: Shape) -> dict[str, tuple[int, ...]]:
    names: dict[str, tuple[int, ...]] = {}
    rank, hidden = s.markov_rank, s.hidden_size
    if rank:
        names |= {f"markov_head.{name}.weight": (s.vocab_size, rank) for name in ("markov_w1", "markov_w2")}
    if s.markov_head_type == "gated":
        names |= {"markov_head.gate_proj.weight": (rank, hidden + rank), "markov_head.gate_proj.bias": (rank,)}
    if s.markov_head_type == "rnn":
        joint = {"weight": (3 * rank, 2 * rank + hidden), "bias": (3 * rank,)}
        names |= {f"markov_head.joint_proj.{name}": shape for name, shape in joint.items()}
    if s.enable_confidence_head:
        features = hidden + (rank if s.confidence_head_with_markov else 0)
        names |= {"confidence_head.proj.weight": (1, features), "confidence_head.proj.bias": (1,)}
    return names
