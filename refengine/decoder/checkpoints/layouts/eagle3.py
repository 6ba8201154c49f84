"""The released layouts of EAGLE-3: SafeAILab (cb7e084), SpecForge (a6b6b02), DeepSpec (afdfa7c), speculators (0.9.0).

They differ in the name of the first layer, in where the taps are said, in switches, and in what is borrowed from the
target: files of SafeAILab mostly hold no embeddings, nor do those that SpecForge writes for SGLang; all others do.
"""

from collections.abc import Callable

import torch

from refengine.decoder.checkpoints.layouts.deepspec_families import GEMMA4_NORMS, Family, read_gemma4, read_qwen3
from refengine.decoder.checkpoints.layouts.eagle_midlayer import DESCENDANTS, default_taps, safeailab, specforge
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, named, says
from refengine.decoder.checkpoints.reading.config import Config, speculative_tokens
from refengine.decoder.checkpoints.reading.draft_vocabulary import refuse_bad_maps, refuse_larger
from refengine.decoder.checkpoints.reading.from_target import embedding, on_target, refuse_other_target
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.checkpoints.reading.sliding import refuse_sliding, sliding_layers, width
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.eagle3 import Eagle3, Shape
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.decoder.networks.windows import Window
from refengine.decoder.protocols import Target

DEEPSPEC: dict[str, Callable[[Config], Family]] = {"Qwen3Eagle3Model": read_qwen3, "Gemma4Eagle3Model": read_gemma4}

SPECFORGE = "LlamaForCausalLMEagle3"
SWITCHES = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "eagle_aux_hidden_state_layer_ids")


def matches(checkpoint: Checkpoint) -> bool:
    """SafeAILab's configs call a drafter a Llama, of another vocabulary."""
    config = checkpoint.config
    return (
        (config.architecture() == SPECFORGE or config.architecture().endswith("ForCausalLM"))
        and (config.architecture() == SPECFORGE or config.fields.get("draft_vocab_size") is not None)
        and not any(config.fields.get(name) is not None for name in DESCENDANTS)
    )


def load(checkpoint: Checkpoint, target: Target, plan: Plan | None = None) -> FeatureRecurrence:
    """plan: how candidates are grown; None: as released."""
    config = checkpoint.config
    shape, released = read_shape(config, target)
    found = checkpoint.read(table(shape, set(checkpoint.shapes)))
    refuse_bad_maps(config, shape, found)
    if "embed_tokens.weight" not in found:
        if target.width != shape.hidden_size:
            config.refuse(f"no embed_tokens.weight is stored, and the target's has width {target.width}")
        found["embed_tokens.weight"] = embedding(target)
    return FeatureRecurrence(Eagle3(shape, on_target(found, target)), plan or released)


def read_shape(config: Config, target: Target) -> tuple[Shape, Plan]:
    """The config's sizes, held to the target, and the released way of drafting."""
    kind = config.architecture()
    if kind in DEEPSPEC:
        shape, plan = _deepspec(config, DEEPSPEC[kind](config), target)
    elif config.fields.get("speculators_model_type") in ("eagle3", "peagle"):
        shape, plan = _speculators(config, target)
    else:
        shape, plan = (specforge if kind == SPECFORGE else safeailab)(config, target)
    hold_to_target(config, shape, target)
    return shape, plan


def hold_to_target(config: Config, shape: Shape, target: Target) -> None:
    """Raise BadInput for sizes that contradict each other, or the target's."""
    config.refuse_uneven(shape.num_attention_heads, shape.num_key_value_heads)
    refuse_larger(config, shape)
    refuse_other_target(config, vocab_size=(shape.vocab_size, target.vocabulary))
    refuse_other_target(config, **{"the width of its features": (shape.target_hidden_size, target.width)})
    for tap in shape.taps:
        # hs[L] of transformers is normed, and training tapped what the layers wrote: the last one cannot be served.
        if not 0 <= tap < target.layers:
            config.refuse(f"it taps hidden state {tap}, outside 0 .. {target.layers - 1} of the target")


def _deepspec(config: Config, family: Family, target: Target) -> tuple[Shape, Plan]:
    """DeepSpec says layers, and layer l writes hidden state l + 1. Every one of its layers is a joined one."""
    refuse_unread(config, *family.read)
    refuse_sliding(config)
    refuse_other_target(config, num_target_layers=(config.integer("num_target_layers"), target.layers))
    shape = config.sizes(
        Shape,
        draft_vocab_size=config.integer("vocab_size"),
        target_hidden_size=config.integer("hidden_size"),
        num_key_value_heads=family.num_key_value_heads,
        head_dim=family.head_dim,
        rope=family.rope,
        first="layers.0",
        taps=tuple(layer + 1 for layer in config.integers("target_layer_ids")),
        joined=config.integer("num_hidden_layers"),
        attention_bias=config.flag("attention_bias", default=False),
        head_norms=True,
        gemma4=family.gemma4,
        attention_k_eq_v=family.attention_k_eq_v,
        final_logit_softcapping=family.final_logit_softcapping,
    )
    return shape, Chain(config.integer("ttt_length"))


def _speculators(config: Config, target: Target) -> tuple[Shape, Plan]:
    inner = config.object("transformer_layer_config")
    inner.one_of("hidden_act", "silu")
    refuse_unread(config, *SWITCHES)
    refuse_unread(inner)
    family = inner.one_of("model_type", "llama", "qwen3")
    named = config.fields.get("eagle_aux_hidden_state_layer_ids") is not None
    reach, by_row = width(inner), config.fields["speculators_model_type"] == "peagle"
    shape = inner.sizes(
        Shape,
        draft_vocab_size=config.integer("draft_vocab_size"),
        target_hidden_size=config.integer("target_hidden_size", default=inner.integer("hidden_size")),
        rope=read_rope(inner, "sliding_attention"),
        first="layers.0",
        taps=config.integers("eagle_aux_hidden_state_layer_ids") if named else default_taps(target.layers),
        attention_bias=inner.flag("attention_bias", default=False),
        mlp_bias=inner.flag("mlp_bias", default=False) and family == "llama",
        head_norms=family == "qwen3",
        norm_before_fc=config.flag("norm_before_fc", default=False),
        fc_norm=config.flag("fc_norm", default=False),
        # speculators falls back to false, vLLM's loader to true: a file that does not say is ambiguous.
        norm_before_residual=config.flag("norm_before_residual"),
        norm_output=config.flag("norm_output", default=False),
        # Without a width its sliding layers see the whole text.
        window=None if reach is None else Window(reach - 1, by_row),
        sliding=sliding_layers(inner),
    )
    length = speculative_tokens(config)
    return shape, Chain(length if length is not None else config.refuse("speculative_tokens is missing"))


def table(s: Shape, there: set[str]) -> Table:
    """Every tensor of the file, with its shape. `there`: the names in the file, some of which it may leave out."""
    hidden, features = s.hidden_size, len(s.taps) * s.target_hidden_size
    names: dict[str, tuple[int, ...] | tuple[tuple[int, ...], torch.dtype]] = {
        "fc.weight": (hidden, features),
        "norm.weight": (hidden,),
        "lm_head.weight": (s.draft_vocab_size, hidden),
    }
    if s.first == "layers.0" or "embed_tokens.weight" in there:
        names["embed_tokens.weight"] = (s.vocab_size, hidden)
    if s.draft_vocab_size < s.vocab_size or {"d2t", "t2d"} & there:
        names["d2t"] = ((s.draft_vocab_size,), torch.int64)
    if "t2d" in there:  # which some files leave out: d2t says it all
        names["t2d"] = ((s.vocab_size,), torch.bool)
    if s.norm_before_fc:
        names["input_norm.weight"] = (features,)
    if s.fc_norm:
        names |= {f"fc_norm.{j}.weight": (s.target_hidden_size,) for j in range(len(s.taps))}
    for i in range(s.num_hidden_layers):
        prefix = f"layers.{i}" if i else s.first
        names |= _layer(s, prefix, 2 * hidden if i < s.joined else hidden)
        if i < s.joined:
            names[f"{prefix}.hidden_norm.weight"] = (hidden,)
    return names


def _layer(s: Shape, prefix: str, width: int) -> dict[str, tuple[int, ...]]:
    hidden, inner = s.hidden_size, s.intermediate_size
    q, kv = s.num_attention_heads * s.head_dim, s.num_key_value_heads * s.head_dim
    attention: dict[str, tuple[int, ...]] = {"q_proj": (q, width), "k_proj": (kv, width), "o_proj": (hidden, q)}
    if not s.attention_k_eq_v:
        attention["v_proj"] = (kv, width)
    names: dict[str, tuple[int, ...]] = {}
    if s.attention_bias:
        names |= {f"{prefix}.self_attn.{name}.bias": x[:1] for name, x in attention.items()}
    if s.head_norms:
        attention |= {"q_norm": (s.head_dim,), "k_norm": (s.head_dim,)}
    names |= {f"{prefix}.self_attn.{name}.weight": x for name, x in attention.items()}
    names |= {f"{prefix}.mlp.{name}.weight": (inner, hidden) for name in ("gate_proj", "up_proj")}
    names[f"{prefix}.mlp.down_proj.weight"] = (hidden, inner)
    if s.mlp_bias:
        names |= {f"{prefix}.mlp.{name}.bias": (inner,) for name in ("gate_proj", "up_proj")}
        names[f"{prefix}.mlp.down_proj.bias"] = (hidden,)
    norms = ("input_layernorm", "post_attention_layernorm", *(GEMMA4_NORMS if s.gemma4 else ()))
    names |= {f"{prefix}.{name}.weight": (hidden,) for name in norms}
    return names | ({f"{prefix}.layer_scalar": (1,)} if s.gemma4 else {})


LAYOUTS = (
    Layout("EAGLE-3 of SafeAILab or SpecForge", matches, load),
    Layout("EAGLE-3 of DeepSpec", named(*DEEPSPEC), load),
    Layout("EAGLE-3 of speculators", says("speculators_model_type", "eagle3"), load),
)
