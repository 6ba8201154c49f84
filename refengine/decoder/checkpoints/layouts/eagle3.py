"""The released layouts of EAGLE-3: SafeAILab (cb7e084), SpecForge (a6b6b02), DeepSpec (afdfa7c), speculators (0.9.0).

They differ in the name of the first layer, in where the taps are said, in switches, and in what is borrowed from the
target: files of SafeAILab mostly hold no embeddings, nor do those that SpecForge writes for SGLang; all others do.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from refengine.decoder.checkpoints.layouts.block_backbone import refuse_other_target
from refengine.decoder.checkpoints.layouts.deepspec_families import GEMMA4_NORMS, Family, read_gemma4, read_qwen3
from refengine.decoder.checkpoints.layouts.eagle_midlayer import default_taps, safeailab, specforge
from refengine.decoder.checkpoints.reading.config import Config, read_config, speculative_tokens
from refengine.decoder.checkpoints.reading.from_target import embedding
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.checkpoints.reading.sliding import refuse_sliding, sliding_layers, width
from refengine.decoder.checkpoints.reading.tensors import Table, read_tensors, tensor_shapes
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.eagle3 import Eagle3, Shape
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.decoder.networks.windows import Window
from refengine.decoder.protocols import Target

DEEPSPEC: dict[str, Callable[[Config], Family]] = {"Qwen3Eagle3Model": read_qwen3, "Gemma4Eagle3Model": read_gemma4}

SPECFORGE = "LlamaForCausalLMEagle3"
SWITCHES = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "eagle_aux_hidden_state_layer_ids")


def load_eagle3(folder: Path, target: Target, plan: Plan | None = None) -> FeatureRecurrence:
    """An EAGLE-3 drafter in the target's dtype and on its device; its release's plan, or one given. Raises BadInput."""
    config = read_config(folder)
    shape, released = read_shape(config, target)
    found = read_tensors(folder, table(shape, set(tensor_shapes(folder))), config)
    refuse_bad_maps(config, shape, found)
    if "embed_tokens.weight" not in found:
        if target.width != shape.hidden_size:
            config.refuse(f"no embed_tokens.weight is stored, and the target's has width {target.width}")
        found["embed_tokens.weight"] = embedding(target)
    tensors = {
        name: x.to(target.device, target.dtype if x.is_floating_point() else x.dtype) for name, x in found.items()
    }
    return FeatureRecurrence(Eagle3(shape, tensors), plan or released)


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
    if shape.num_attention_heads % shape.num_key_value_heads:
        config.refuse(
            f"{shape.num_attention_heads} heads do not divide over {shape.num_key_value_heads} key/value heads"
        )
    if shape.draft_vocab_size > shape.vocab_size:
        config.refuse(f"draft_vocab_size is {shape.draft_vocab_size}, and vocab_size is {shape.vocab_size}")
    for name, ours, theirs in (
        ("vocab_size", shape.vocab_size, target.vocabulary),
        ("the width of its features", shape.target_hidden_size, target.width),
    ):
        if ours != theirs:
            config.refuse(f"{name} is {ours}, and the target has {theirs}: it was made for another target")
    for tap in shape.taps:
        # hs[L] of transformers is normed, and training tapped what the layers wrote: the last one cannot be served.
        if not 0 <= tap < target.layers:
            config.refuse(f"it taps hidden state {tap}, outside 0 .. {target.layers - 1} of the target")


def _deepspec(config: Config, family: Family, target: Target) -> tuple[Shape, Plan]:
    """DeepSpec says layers, and layer l writes hidden state l + 1. Every one of its layers is a joined one."""
    refuse_unread(config, *family.read)
    refuse_sliding(config)
    refuse_other_target(config, target, num_target_layers=config.integer("num_target_layers"))
    vocabulary, hidden = config.integer("vocab_size"), config.integer("hidden_size")
    layers = config.integer("num_hidden_layers")
    shape = Shape(
        vocab_size=vocabulary,
        draft_vocab_size=vocabulary,
        hidden_size=hidden,
        target_hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size"),
        num_hidden_layers=layers,
        num_attention_heads=config.integer("num_attention_heads"),
        num_key_value_heads=family.num_key_value_heads,
        head_dim=family.head_dim,
        rms_norm_eps=config.number("rms_norm_eps"),
        rope=family.rope,
        first="layers.0",
        taps=tuple(layer + 1 for layer in config.integers("target_layer_ids")),
        joined=layers,
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
    hidden, family = inner.integer("hidden_size"), inner.one_of("model_type", "llama", "qwen3")
    named = config.fields.get("eagle_aux_hidden_state_layer_ids") is not None
    reach, by_row = width(inner), config.fields["speculators_model_type"] == "peagle"
    shape = Shape(
        vocab_size=inner.integer("vocab_size"),
        draft_vocab_size=config.integer("draft_vocab_size"),
        hidden_size=hidden,
        target_hidden_size=config.integer("target_hidden_size") if config.fields.get("target_hidden_size") else hidden,
        intermediate_size=inner.integer("intermediate_size"),
        num_hidden_layers=inner.integer("num_hidden_layers"),
        num_attention_heads=inner.integer("num_attention_heads"),
        num_key_value_heads=inner.integer("num_key_value_heads"),
        head_dim=inner.integer("head_dim"),
        rms_norm_eps=inner.number("rms_norm_eps"),
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


class Vocabularies(Protocol):
    """The sizes of the draft's vocabulary and of the target's."""

    @property
    def draft_vocab_size(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...


def refuse_bad_maps(config: Config, s: Vocabularies, found: dict[str, Tensor]) -> None:
    """d2t and t2d say the same thing twice, and must agree."""
    if "d2t" not in found:
        return
    targets = torch.arange(s.draft_vocab_size) + found["d2t"]
    where = Path(config.path).with_name("model.safetensors")
    maps = Config(str(where), {})
    if bool(((targets < 0) | (targets >= s.vocab_size)).any()):
        maps.refuse(f"tensor d2t leads outside the vocabulary of {s.vocab_size} tokens")
    if len(set(targets.tolist())) < len(targets):
        maps.refuse("tensor d2t leads two draft tokens to one token of the target")
    member = torch.zeros(s.vocab_size, dtype=torch.bool)
    member[targets] = True
    if "t2d" in found and not torch.equal(member, found["t2d"]):
        maps.refuse("tensors d2t and t2d disagree about which tokens can be drafted")
