"""The two layouts of Qwen's multi-token prediction module.

*Native*: `mtp.*` among the tensors of the target's own checkpoint (Qwen3-Next, Qwen3.5; transformers skips them when it
loads the target), config fields in `text_config` where there is one. *speculators* (0.9.0): a folder of its own,
`mtp_layers.0.*`, the target's config in `transformer_layer_config`. FastMTP's own file has the latter's names for a
MiMo layer whose projection takes the hidden state first: read as this one it would be silently wrong, and its
`model_type` is refused.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, says
from refengine.decoder.checkpoints.reading.config import Config, speculative_tokens
from refengine.decoder.checkpoints.reading.from_target import embedding, head, on_target, refuse_other_target
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.drafters.qwen_mtp import Experts, QwenMTP, Shape
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

NATIVE, SPECULATORS = "mtp.", "mtp_layers.0."
# Beginnings of names; speculators' side is without its prefix. What is not named here keeps its name.
RENAMED = {
    "fc.": "input_proj.",
    "norm.": "final_layernorm.",
    "pre_fc_norm_hidden.": "hidden_layernorm.",
    "pre_fc_norm_embedding.": "token_layernorm.",
    "layers.0.": "",
}
FUSED = ("gate_up_proj", "down_proj")
EXPERTS = "layers.0.mlp.experts."
FAMILIES = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
ROTARY = 0.25  # transformers' default where neither the config nor its rope_parameters say
# What speculators' class holds of the target. Its converter writes the last one as it was born, full of NaN, and its
# loader overwrites all three.
COPIES = {"embed_tokens.weight", "lm_head.weight", "verifier_lm_head.weight"}


def load_native(checkpoint: Checkpoint, target: Target, gamma: int = 4) -> FeatureRecurrence:
    """gamma: drafted tokens a round, by recursion."""
    return FeatureRecurrence(network(checkpoint, target), Chain(gamma))


def load_speculators(checkpoint: Checkpoint, target: Target, plan: Plan | None = None) -> FeatureRecurrence:
    """plan: how candidates are grown; None: a chain of as many tokens as the config says."""
    length = speculative_tokens(checkpoint.config)
    if length is None:
        checkpoint.config.refuse("speculative_tokens is missing")
    return FeatureRecurrence(network(checkpoint, target), plan or Chain(length))


def network(checkpoint: Checkpoint, target: Target) -> QwenMTP:
    """The module in the target's dtype and on its device."""
    shape, tensors = read(checkpoint)
    refuse_other_target(
        checkpoint.config,
        "mtp.* drafts for the model it is part of",
        vocab_size=(shape.vocab_size, target.vocabulary),
        hidden_size=(shape.hidden_size, target.width),
        num_hidden_layers=(shape.num_hidden_layers, target.layers),
    )
    shared = {"embed_tokens.weight": embedding(target), "lm_head.weight": head(target)}
    for name in COPIES & tensors.keys():
        copy, own = tensors.pop(name), shared[name.removeprefix("verifier_")]
        if not bool(copy.isnan().all()) and not torch.equal(copy.to(own), own):
            raise BadInput(f"{checkpoint.folder}: tensor {name} is not the target's, whose copy it has to be")
    return QwenMTP(shape, on_target(shared | tensors, target))


def is_native(checkpoint: Checkpoint) -> bool:
    """Whether a model carries modules: neither its class nor a field of its config says so."""
    causal = re.search("For(CausalLM|ConditionalGeneration)$", checkpoint.config.architecture())
    return bool(causal) and any(name.startswith(NATIVE) for name in checkpoint.shapes)


def is_speculators(config: Config) -> bool:
    return config.fields.get("speculators_model_type") == "mtp"


def read(checkpoint: Checkpoint) -> tuple[Shape, dict[str, Tensor]]:
    """The module of either layout: its sizes, and its tensors named as after `mtp.`, experts apart. Raises BadInput.

    Copies of the target's tensors (COPIES) are among them where speculators' layout has them.
    """
    config, names, folder = checkpoint.config, checkpoint.shapes, checkpoint.folder
    inner, table = layer_config(config), dict[str, tuple[int, ...]]()
    if is_speculators(config):
        refuse_unread(config)
        shape = read_shape(inner, f"{SPECULATORS}mlp.gate.weight" in names)
        table = {speculators_name(name): size for name, size in own_table(shape, fused=True).items()}
        table |= dict.fromkeys(COPIES & names.keys(), (shape.vocab_size, shape.hidden_size))
        found = checkpoint.read(table, unused=COPIES)
        return shape, apart({name if name in COPIES else native_name(name): x for name, x in found.items()}, folder)
    shape = read_shape(inner, f"{NATIVE}layers.0.mlp.gate.weight" in names)
    for fused in layouts(shape, inner, names):
        table |= {NATIVE + name: size for name, size in own_table(shape, fused).items()}
    found = checkpoint.read(table, inner, within=(NATIVE,))
    return shape, apart({name.removeprefix(NATIVE): x for name, x in found.items()}, folder)


def layouts(shape: Shape, inner: Config, names: Iterable[str]) -> list[bool]:
    """How the experts of a native file are stored: fused (True), each on its own, or both."""
    if not isinstance(shape.mlp, Experts):
        return [False]
    there = {name.removeprefix(NATIVE + EXPERTS) for name in names if name.startswith(NATIVE + EXPERTS)}
    fused, single = bool(there & set(FUSED)), bool(there - set(FUSED))
    if not there:
        return [inner.fields["model_type"] != "qwen3_next"]
    return [True] * fused + [False] * single


def apart(found: Mapping[str, Tensor], folder: Path) -> dict[str, Tensor]:
    """The same tensors with each expert on its own. A file that holds both must say the same thing twice."""
    rest = {name: x for name, x in found.items() if name not in (EXPERTS + FUSED[0], EXPERTS + FUSED[1])}
    if EXPERTS + FUSED[0] not in found:
        return rest
    gate_up, down = (found[EXPERTS + name] for name in FUSED)
    for i, (both, back) in enumerate(zip(gate_up, down, strict=True)):
        gate, up = both.chunk(2)
        for name, x in (("gate_proj", gate), ("up_proj", up), ("down_proj", back)):
            key = f"{EXPERTS}{i}.{name}.weight"
            if key in rest and not torch.equal(rest[key], x):
                raise BadInput(
                    f"{folder}: tensor {NATIVE}{key} is not this expert of {NATIVE}{EXPERTS}{FUSED[0]} and {FUSED[1]}: "
                    "stitched over fused experts, a file holds both (`refengine checkpoint stitch-mtp` leaves one)"
                )
            rest[key] = x
    return rest


def native_name(name: str) -> str:
    """speculators' name -> what stands after `mtp.`."""
    rest = name.removeprefix(SPECULATORS)
    for ours, theirs in RENAMED.items():
        if theirs and rest.startswith(theirs):
            return ours + rest.removeprefix(theirs)
    return f"layers.0.{rest}"


def speculators_name(name: str) -> str:
    """What stands after `mtp.` -> speculators' name."""
    ours = next(ours for ours in RENAMED if name.startswith(ours))
    return SPECULATORS + RENAMED[ours] + name.removeprefix(ours)


def check_target_experts(checkpoint: Checkpoint) -> None:
    """Hold the target's own experts to the config where each is stored on its own. Raises BadInput.

    transformers packs them while it loads them, and its refusals would name the pack, or nothing.
    """
    inner, shapes, folder = layer_config(checkpoint.config), checkpoint.shapes, checkpoint.folder
    stored = {name: re.match(r"(.*\.layers\.\d+\.mlp\.experts\.)\d+\.", name) for name in shapes}
    own = {name: found[1] for name, found in stored.items() if found and not name.startswith(NATIVE)}
    if not own:
        return
    s, hidden = experts(inner), inner.integer("hidden_size")
    table = {
        name: size
        for prefix in sorted(set(own.values()))
        for i in range(s.num_experts)
        for name, size in _mlp(f"{prefix}{i}.", hidden, s.moe_intermediate_size).items()
    }
    for name, size in table.items():
        if name not in shapes:
            raise BadInput(f"{folder}: tensor {name} is missing")
        if shapes[name] != size:
            raise BadInput(f"{folder}: tensor {name} has shape {list(shapes[name])}, the config asks for {list(size)}")
        if "F" not in (kind := checkpoint.kinds[name]):
            raise BadInput(f"{folder}: tensor {name} has dtype {kind}, expected floating point")
    if strays := sorted(own.keys() - table.keys()):
        raise BadInput(f"{folder}: tensor {strays[0]} is in the file, and the config has no place for it")


# --- what the config says ---------------------------------------------------------------------------------------------


def layer_config(config: Config) -> Config:
    """The config of the language model: inside, or the whole."""
    name = "transformer_layer_config" if is_speculators(config) else "text_config"
    inner = config.fields.get(name)
    if not isinstance(inner, dict):
        if is_speculators(config):
            config.refuse(f"{name} is {inner!r}, expected an object")
        return config
    dtype = {key: config.fields[key] for key in ("dtype", "torch_dtype") if key in config.fields}
    return Config(f"{config.path} ({name})", {**dtype, **inner})


def read_shape(c: Config, routed: bool) -> Shape:
    """The sizes. routed: whether the file has a router, which the config may leave open."""
    c.one_of("model_type", *FAMILIES)
    c.one_of("hidden_act", "silu")
    refuse_unread(c, "partial_rotary_factor")
    for name in ("num_nextn_predict_layers", "mtp_num_hidden_layers"):
        if c.fields.get(name) not in (None, 1):
            c.refuse(f"{name} is {c.fields[name]!r}, and modules of one layer are all that is known")
    if c.flag("mtp_use_dedicated_embeddings", default=False):
        c.refuse("mtp_use_dedicated_embeddings is true, and only the target's embeddings are implemented here")
    if not c.flag("attn_output_gate", default=True):
        c.refuse("attn_output_gate is false, and these layers have a gate")
    shape = c.sizes(
        Shape,
        rotary=rotary(c),
        rope_theta=c.rope_theta(),
        mlp=experts(c) if is_mixture(c, routed) else c.integer("intermediate_size"),
    )
    c.refuse_uneven(shape.num_attention_heads, shape.num_key_value_heads)
    return shape


def rotary(c: Config) -> int:
    """`rope_parameters` win over the top level, as in transformers, which writes both and they may differ."""
    where = c.object("rope_parameters").fields or c.object("rope_scaling").fields
    for fields in (where, c.fields, {"partial_rotary_factor": ROTARY}):
        if fields.get("partial_rotary_factor") is not None:
            part = Config(c.path, fields).number("partial_rotary_factor")
            break
    count = int(c.integer("head_dim") * part)
    if part > 1 or count % 2 or not count:
        c.refuse(f"partial_rotary_factor is {part}, which leaves {count} of {c.integer('head_dim')} numbers to rotate")
    return count


def is_mixture(c: Config, routed: bool) -> bool:
    """Whether the module's MLP is a mixture. Qwen3-Next can mix dense and routed layers, and readers disagree about
    which layer's rule the module follows (vLLM: the first; speculators: the last full-attention one); the file knows.
    """
    if c.fields["model_type"] != "qwen3_next":
        return bool(c.fields["model_type"] == "qwen3_5_moe_text")
    uniform = not c.fields.get("mlp_only_layers") and c.fields.get("decoder_sparse_step", 1) == 1
    return bool(c.fields.get("num_experts")) and (uniform or routed)


def experts(c: Config) -> Experts:
    found = c.sizes(Experts, norm_topk_prob=c.flag("norm_topk_prob", default=True))
    if found.num_experts_per_tok > found.num_experts:
        c.refuse(f"num_experts_per_tok is {found.num_experts_per_tok}, and there are {found.num_experts} experts")
    if not found.norm_topk_prob and c.fields["model_type"] != "qwen3_next":
        c.refuse("norm_topk_prob is false, and Qwen3.5's router always normalises")
    return found


def own_table(s: Shape, fused: bool) -> dict[str, tuple[int, ...]]:
    """Every tensor of the module, named as after `mtp.`, with its shape."""
    hidden, q, kv = s.hidden_size, s.num_attention_heads * s.head_dim, s.num_key_value_heads * s.head_dim
    names: dict[str, tuple[int, ...]] = {"fc.weight": (hidden, 2 * hidden)}
    for norm in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        names[f"{norm}.weight"] = (hidden,)
    for norm in ("input_layernorm", "post_attention_layernorm"):
        names[f"layers.0.{norm}.weight"] = (hidden,)
    projections = {"q": (2 * q, hidden), "k": (kv, hidden), "v": (kv, hidden), "o": (hidden, q)}
    for name, size in projections.items():
        names[f"layers.0.self_attn.{name}_proj.weight"] = size
        if s.attention_bias:
            names[f"layers.0.self_attn.{name}_proj.bias"] = size[:1]
    names |= {f"layers.0.self_attn.{name}_norm.weight": (s.head_dim,) for name in "qk"}
    if not isinstance(s.mlp, Experts):
        return names | _mlp("layers.0.mlp.", hidden, s.mlp)
    e, inner = s.mlp.num_experts, s.mlp.moe_intermediate_size
    names |= {"layers.0.mlp.gate.weight": (e, hidden), "layers.0.mlp.shared_expert_gate.weight": (1, hidden)}
    names |= _mlp("layers.0.mlp.shared_expert.", hidden, s.mlp.shared_expert_intermediate_size)
    if fused:
        sizes = ((e, 2 * inner, hidden), (e, hidden, inner))
        return names | {EXPERTS + name: size for name, size in zip(FUSED, sizes, strict=True)}
    return names | {k: x for i in range(e) for k, x in _mlp(f"{EXPERTS}{i}.", hidden, inner).items()}


def _mlp(prefix: str, hidden: int, inner: int) -> dict[str, tuple[int, ...]]:
    sizes = {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}
    return {f"{prefix}{name}.weight": size for name, size in sizes.items()}


LAYOUTS = (
    Layout("Qwen's module in its target's file", is_native, load_native),
    Layout("Qwen's module of speculators", says("speculators_model_type", "mtp"), load_speculators),
)
