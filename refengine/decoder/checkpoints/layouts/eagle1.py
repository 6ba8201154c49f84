"""The released layout of EAGLE-1 and EAGLE-2 (SafeAILab/EAGLE cb7e084), which are the same files.

The head is never stored, the embeddings mostly not: both are the target's. Many releases are a pickle to be converted.
"""

from pathlib import Path

from refengine.decoder.checkpoints.layouts.eagle_midlayer import safeailab_rope
from refengine.decoder.checkpoints.reading.config import Config, read_config
from refengine.decoder.checkpoints.reading.from_target import embedding, head
from refengine.decoder.checkpoints.reading.sliding import refuse_sliding
from refengine.decoder.checkpoints.reading.tensors import Table, read_tensors, tensor_shapes
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.eagle1 import Eagle1, Shape
from refengine.decoder.drafters.eagle_trees import DynamicTree
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.decoder.protocols import Target


def load_eagle1(folder: Path, target: Target, plan: Plan | None = None) -> FeatureRecurrence:
    """An EAGLE-1 drafter in the target's dtype and on its device; without a plan, EAGLE-2's tree. Raises BadInput."""
    config = read_config(folder)
    shape = read_shape(config, target)
    own = "embed_tokens.weight" in tensor_shapes(folder)
    found = read_tensors(folder, table(shape, own), config)
    borrowed = {"lm_head.weight": head(target)} | ({} if own else {"embed_tokens.weight": embedding(target)})
    tensors = {name: x.to(target.device, target.dtype) for name, x in (borrowed | found).items()}
    return FeatureRecurrence(Eagle1(shape, tensors), plan or DynamicTree())


def read_shape(config: Config, target: Target) -> Shape:
    """The config's sizes, held to the target."""
    config.one_of("hidden_act", "silu")
    refuse_unread(config)
    refuse_sliding(config)
    heads, there = config.integer("num_attention_heads"), config.fields
    shape = Shape(
        vocab_size=config.integer("vocab_size"),
        hidden_size=config.integer("hidden_size"),
        intermediate_size=config.integer("intermediate_size"),
        num_hidden_layers=config.integer("num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=config.integer("num_key_value_heads") if there.get("num_key_value_heads") else heads,
        rms_norm_eps=config.number("rms_norm_eps"),
        rope=safeailab_rope(config),
        bias=config.flag("bias", default=True),
        qkv_bias=config.flag("qkv_bias", default=False),
        num_target_layers=target.layers,
    )
    if shape.hidden_size % heads:
        config.refuse(f"hidden_size {shape.hidden_size} does not divide over {heads} heads")
    if heads % shape.num_key_value_heads:
        config.refuse(f"{heads} heads do not divide over {shape.num_key_value_heads} key/value heads")
    for name, ours, theirs in (
        ("vocab_size", shape.vocab_size, target.vocabulary),
        ("hidden_size", shape.hidden_size, target.width),
    ):
        if ours != theirs:
            config.refuse(f"{name} is {ours}, and the target has {theirs}: it was made for another target")
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
