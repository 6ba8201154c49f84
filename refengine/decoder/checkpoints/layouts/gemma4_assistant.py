"""The released layout of the Gemma 4 assistant (transformers 5.20 - 5.23), plain and unified (12B): the same files.

Sizes are in `text_config`. A head width or number of key/value heads that differs by layer stands in `per_layer_config`
(transformers) or in `global_head_dim` and `num_global_key_value_heads` (the released files); the class's defaults hold
where a field is absent. The tensors of keys and values do not exist, and the target's are found by its own config.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, named
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.from_target import on_target
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.gemma4_assistant import SLIDING, Backbone, Gemma4Assistant, Shape
from refengine.decoder.networks.layers import Heads
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

ARCHITECTURES = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")
FULL = "full_attention"
ROPES = {  # of a config without rope_parameters
    SLIDING: {"rope_type": "default", "rope_theta": 10_000.0},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1_000_000.0},
}
ORDERING = "masked_embedding.token_ordering"


def load(checkpoint: Checkpoint, target: Target, gamma: int = 4, stale_keys: bool = False) -> Gemma4Assistant:
    """gamma, stale_keys: see `Gemma4Assistant`."""
    config = checkpoint.config
    shape = read_shape(config)
    found = checkpoint.read(table(shape))
    if ORDERING in found:
        _check_ordering(config, found[ORDERING])
    return Gemma4Assistant(shape, on_target(found, target), backbone(config, shape, target), gamma, stale_keys)


def _check_ordering(config: Config, ordering: Tensor) -> None:
    """Each token stands under one centroid: one that is left out could never be drafted, one twice is scored twice."""
    size = len(ordering)
    if bool(((ordering < 0) | (ordering >= size)).any()):
        config.refuse(f"{ORDERING} names tokens outside the vocabulary of {size}")
    times = torch.bincount(ordering, minlength=size)
    if bool((times != 1).any()):
        missing, twice = int((times == 0).nonzero()[0]), int((times > 1).nonzero()[0])
        config.refuse(f"{ORDERING} is no permutation: it names token {twice} twice, and token {missing} never")


# --- the config ------------------------------------------------------------------------------------------------------


def read_shape(config: Config) -> Shape:
    """The config's sizes, contradictions refused."""
    text = Config(f"{config.path}, text_config", _object(config, "text_config"))
    layers, types = text.integer("num_hidden_layers"), _layer_types(text)
    _refuse_what_no_assistant_has(text, layers)
    ordered = config.flag("use_ordered_embeddings", default=False)
    shape = text.sizes(
        Shape,
        backbone_hidden_size=config.integer("backbone_hidden_size"),
        layer_types=types,
        heads={kind: _heads(text, kind, types) for kind in sorted(set(types))},
        tie_word_embeddings=config.flag("tie_word_embeddings", default=True),
        num_centroids=config.integer("num_centroids") if ordered else 0,
        centroid_intermediate_top_k=config.integer("centroid_intermediate_top_k") if ordered else 0,
    )
    if ordered and shape.vocab_size % shape.num_centroids:
        config.refuse(f"{shape.vocab_size} tokens do not divide over {shape.num_centroids} centroids")
    if shape.centroid_intermediate_top_k > shape.num_centroids:
        config.refuse(
            f"centroid_intermediate_top_k is {shape.centroid_intermediate_top_k} of {shape.num_centroids} centroids"
        )
    return shape


def _refuse_what_no_assistant_has(text: Config, layers: int) -> None:
    text.one_of("hidden_activation", "gelu_pytorch_tanh")
    refuse_unread(text, "hidden_activation", "final_logit_softcapping")  # the released class caps no logits
    shared = text.fields.get("num_kv_shared_layers") or layers  # 0 is what the released class turns into all
    if shared != layers:
        text.refuse(f"num_kv_shared_layers is {shared}, and all {layers} layers of an assistant share")
    for name in (
        "hidden_size_per_layer_input",
        "vocab_size_per_layer_input",
        "enable_moe_block",
        "use_double_wide_mlp",
    ):
        if text.fields.get(name):
            text.refuse(f"{name} is {text.fields[name]!r}, and an assistant has none")
    if text.fields.get("use_bidirectional_attention") not in (None, "vision"):
        text.refuse(f"use_bidirectional_attention is {text.fields['use_bidirectional_attention']!r}: not implemented")


def _layer_types(text: Config) -> tuple[str, ...]:
    layers = text.integer("num_hidden_layers")
    types = text.fields.get("layer_types")
    if types is None:
        types = [FULL if i % 6 == 5 or i == layers - 1 else SLIDING for i in range(layers)]
    if not isinstance(types, list) or len(types) != layers:
        text.refuse(f"layer_types has {len(types)} entries for num_hidden_layers {layers}")
    if unknown := [kind for kind in types if kind not in ROPES]:
        text.refuse(f"layer_types has {unknown[0]!r}, expected {SLIDING!r} or {FULL!r}")
    if types[-1] != FULL:
        text.refuse(f"layer_types ends with {types[-1]!r}, and the last layer of Gemma 4 is {FULL!r}")
    return tuple(types)


def _heads(text: Config, kind: str, types: tuple[str, ...]) -> Heads:
    """What the layers of one type share; the released code wants it the same in all of them."""
    sizes = {_sizes(text, i, kind) for i, other in enumerate(types) if other == kind}
    if len(sizes) > 1:
        text.refuse(f"per_layer_config gives the layers of type {kind} different sizes")
    width, groups = sizes.pop()
    if width % 2:
        text.refuse(f"head_dim of {kind} is {width}, and rotary embeddings need an even one")
    text.refuse_uneven(text.integer("num_attention_heads"), groups)
    ropes = _object(text, "rope_parameters") if text.fields.get("rope_parameters") is not None else ROPES
    # Beside the types' entries transformers leaves strays ("rope_theta": null, "rope_type": "default").
    if not isinstance(ropes.get(kind), Mapping):
        text.refuse(f"rope_parameters has no entry for {kind}")
    rope = read_rope(Config(text.path, {**text.fields, "rope_parameters": ropes}), kind)
    return Heads(groups, width, rope, text.number("rms_norm_eps"), gemma4=True)


def _sizes(text: Config, layer: int, kind: str) -> tuple[int, int]:
    """(head_dim, num_key_value_heads) of one layer."""
    if "per_layer_config" not in text.fields:
        width = text.fields.get("global_head_dim", 512) if kind == FULL else None
        groups = text.fields.get("num_global_key_value_heads") if kind == FULL else None
        # The released class reads the number of global heads only where keys and values are one projection.
        own = {"head_dim": width, "num_key_value_heads": groups if text.flag("attention_k_eq_v", False) else None}
    else:
        by_layer = {int(i): fields for i, fields in _object(text, "per_layer_config").items()}  # "3" or "03"
        own = by_layer.get(layer, {})
        if unknown := sorted(own.keys() - {"head_dim", "num_key_value_heads"}):
            text.refuse(f"per_layer_config of layer {layer} has {unknown[0]}, which is not implemented")
    merged = Config(text.path, {**text.fields, **{name: x for name, x in own.items() if x is not None}})
    return merged.integer("head_dim"), merged.integer("num_key_value_heads")


def _object(config: Config, name: str) -> Mapping[str, Any]:
    value = config.fields.get(name)
    if not isinstance(value, dict):
        config.refuse(f"{name} is {value!r}, expected an object")
    return dict(value)


# --- the tensors -----------------------------------------------------------------------------------------------------


def table(s: Shape) -> Table:
    """Every tensor of the file, with its shape."""
    hidden, inner = s.hidden_size, s.intermediate_size
    names: dict[str, Any] = {
        "model.embed_tokens.weight": (s.vocab_size, hidden),
        "model.norm.weight": (hidden,),
        "pre_projection.weight": (hidden, 2 * s.backbone_hidden_size),
        "post_projection.weight": (s.backbone_hidden_size, hidden),
    }
    if not s.tie_word_embeddings:
        names["lm_head.weight"] = (s.vocab_size, hidden)
    if s.num_centroids:
        names["masked_embedding.centroids.weight"] = (s.num_centroids, hidden)
        names[ORDERING] = ((s.vocab_size,), torch.int64)
    for i, kind in enumerate(s.layer_types):
        layer, width = f"model.layers.{i}.", s.heads[kind].width
        for name, size in {
            "q": (s.num_attention_heads * width, hidden),
            "o": (hidden, s.num_attention_heads * width),
        }.items():
            names[f"{layer}self_attn.{name}_proj.weight"] = size
            if s.attention_bias:
                names[f"{layer}self_attn.{name}_proj.bias"] = size[:1]
        names[f"{layer}self_attn.q_norm.weight"] = (width,)
        names |= {f"{layer}mlp.{name}.weight": (inner, hidden) for name in ("gate_proj", "up_proj")}
        names[f"{layer}mlp.down_proj.weight"] = (hidden, inner)
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            names[f"{layer}{name}_layernorm.weight"] = (hidden,)
        names[f"{layer}layer_scalar"] = (1,)
    return names


# --- the target ------------------------------------------------------------------------------------------------------


def backbone(config: Config, s: Shape, target: Target) -> Backbone:
    """The target's embeddings and the layers whose keys and values are read, held to the assistant's sizes."""
    lender = target.lends
    if lender is None:
        raise BadInput(f"{config.path}: the assistant reads a transformers model, and this target is none")
    for name, ours, theirs in (
        ("backbone_hidden_size", s.backbone_hidden_size, target.width),
        ("vocab_size", s.vocab_size, target.vocabulary),
    ):
        if ours != theirs:
            config.refuse(f"{name} is {ours}, and the target has {theirs}")
    stores = lender.stores()
    for kind, heads in s.heads.items():
        if kind not in stores:
            config.refuse(f"its layers of type {kind} read the target's, and the target has none that store any")
        for name, ours, theirs in (
            ("head_dim", heads.width, stores[kind].head_dim),
            ("num_key_value_heads", heads.key_value_heads, stores[kind].key_value_heads),
        ):
            if ours != theirs:
                config.refuse(f"{name} of {kind} is {ours}, and the target has {theirs}")
    return Backbone(target, {kind: store.layer for kind, store in stores.items()}, lender.embed)


LAYOUTS = (Layout("the Gemma 4 assistant", named(*ARCHITECTURES), load),)
