"""The released layout of EAGLE-1 and EAGLE-2 (SafeAILab/EAGLE cb7e084), which are the same files.

The head is never stored, the embeddings mostly not: both are the target's. Many releases are a pickle to be converted.
"""

from refengine.decoder.checkpoints.layouts.eagle_midlayer import DESCENDANTS, safeailab_rope
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.from_target import embedding, head, on_target, refuse_other_target
from refengine.decoder.checkpoints.reading.sliding import refuse_sliding
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.eagle1 import Eagle1, Shape
from refengine.decoder.drafters.eagle_trees import MC_SIM_7B_63, StaticTree
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.decoder.protocols import Target


def matches(checkpoint: Checkpoint) -> bool:
    """SafeAILab's configs call a drafter a Llama: EAGLE-1's differs from one in the names of its tensors alone."""
    fields = checkpoint.config.fields
    return (
        checkpoint.config.architecture().endswith("ForCausalLM")
        and not any(fields.get(name) is not None for name in ("draft_vocab_size", *DESCENDANTS))
        and any(name.startswith("layers.0.") for name in checkpoint.shapes)
    )


def load(checkpoint: Checkpoint, target: Target, plan: Plan | None = None) -> FeatureRecurrence:
    """plan: how candidates are grown; None: as EAGLE-1's release does (EAGLE-2's is `DynamicTree()`)."""
    shape = read_shape(checkpoint.config, target)
    own = "embed_tokens.weight" in checkpoint.shapes
    borrowed = {"lm_head.weight": head(target)} | ({} if own else {"embed_tokens.weight": embedding(target)})
    tensors = on_target(borrowed | checkpoint.read(table(shape, own)), target)
    return FeatureRecurrence(Eagle1(shape, tensors), plan or StaticTree(MC_SIM_7B_63))


def read_shape(config: Config, target: Target) -> Shape:
    """The config's sizes, held to the target."""
    config.one_of("hidden_act", "silu")
    refuse_unread(config)
    refuse_sliding(config)
    heads = config.integer("num_attention_heads")
    shape = config.sizes(
        Shape,
        num_key_value_heads=config.integer("num_key_value_heads", default=heads),
        rope=safeailab_rope(config),
        bias=config.flag("bias", default=True),
        num_target_layers=target.layers,
    )
    if shape.hidden_size % heads:
        config.refuse(f"hidden_size {shape.hidden_size} does not divide over {heads} heads")
    config.refuse_uneven(heads, shape.num_key_value_heads)
    refuse_other_target(
        config, vocab_size=(shape.vocab_size, target.vocabulary), hidden_size=(shape.hidden_size, target.width)
    )
    return shape


def table(s: Shape, own_embedding: bool) -> Table:
    """Every tensor of the file, with its shape."""
    hidden, inner, kv = s.hidden_size, s.intermediate_size, s.num_key_value_heads * s.head_dim
    names: dict[str, tuple[int, ...]] = {"fc.weight": (hidden, 2 * hidden)}
    if s.bias:
        names["fc.bias"] = (hidden,)
    if own_embedding:
        names["embed_tokens.weight"] = (s.vocab_size, hidden)
    for i in range(s.num_hidden_layers):
        layer = f"layers.{i}."
        for name, size in {"q": (hidden, hidden), "k": (kv, hidden), "v": (kv, hidden)}.items():
            names[f"{layer}self_attn.{name}_proj.weight"] = size
            if s.qkv_bias:
                names[f"{layer}self_attn.{name}_proj.bias"] = size[:1]
        names[f"{layer}self_attn.o_proj.weight"] = (hidden, hidden)
        names |= {f"{layer}mlp.{name}.weight": (inner, hidden) for name in ("gate_proj", "up_proj")}
        names[f"{layer}mlp.down_proj.weight"] = (hidden, inner)
        names[f"{layer}post_attention_layernorm.weight"] = (hidden,)
        if i:
            names[f"{layer}input_layernorm.weight"] = (hidden,)
    return names


LAYOUTS = (Layout("EAGLE-1 of SafeAILab", matches, load),)
