"""DeepSeek-V3's layout: one checkpoint is target and drafter, its layers num_hidden_layers, ... are the modules.

Each module stores copies of the target's embedding and head. Readers disagree about what a copy that is not one would
mean (transformers and SGLang never look at them, vLLM uses them), so they must be there and be equal.
"""

import math
import re

from torch import Tensor, equal, promote_types

from refengine.decoder.checkpoints.layouts.deepseek_layers import prefix, table
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.from_target import on_target, refuse_other_target
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.deepseek_mtp import Module, ModuleChain, Recycled, Shape
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.networks.experts import Routing
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence
from refengine.decoder.networks.latent_attention import LatentHeads
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

LAYER = re.compile(r"model\.layers\.(\d+)\.")


def load(
    checkpoint: Checkpoint, target: Target, gamma: int | None = None, recycled: Recycled = "normed"
) -> FeatureRecurrence | ModuleChain:
    """gamma, recycled: how often one module is used in a round (4), and on what; several are used once each."""
    shape, found = read(checkpoint)
    refuse_other_target(
        checkpoint.config,
        "the modules draft for their own checkpoint",
        vocab_size=(shape.vocab_size, target.vocabulary),
        hidden_size=(shape.hidden_size, target.width),
        num_hidden_layers=(shape.num_hidden_layers, target.layers),
    )
    count = shape.num_nextn_predict_layers
    own = tuple(prefix(shape.num_hidden_layers + depth) for depth in range(count))
    stored = {name: x for name, x in found.items() if name.startswith(own)}
    # The bias of the choice of experts keeps its precision: it decides, and half precision would decide otherwise.
    biases = {
        name: x.to(target.device, promote_types(target.dtype, x.dtype))
        for name, x in stored.items()
        if name.endswith("e_score_correction_bias")
    }
    modules = [Module(shape, on_target(stored, target) | biases, depth, recycled) for depth in range(count)]
    if count == 1:
        return FeatureRecurrence(modules[0], Chain(4 if gamma is None else gamma))
    if gamma is not None:
        checkpoint.config.refuse(f"gamma is {gamma}, and each of its {count} modules drafts one token")
    return ModuleChain(modules)


def has_modules(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a DeepSeek-V3 that carries modules: transformers' config promises one in any case."""
    config = checkpoint.config
    if config.fields.get("model_type") != "deepseek_v3":
        return False
    layers = (int(found[1]) for found in map(LAYER.match, checkpoint.shapes) if found)
    return max(layers, default=0) >= config.integer("num_hidden_layers")


def read(checkpoint: Checkpoint) -> tuple[Shape, dict[str, Tensor]]:
    """Everything in the folder, target and modules, held to the config. Raises BadInput."""
    config = checkpoint.config
    shape = read_shape(config)
    found = checkpoint.read(table(shape, config))
    embedding = found["model.embed_tokens.weight"]
    head = found.get("lm_head.weight", embedding)
    for depth in range(shape.num_nextn_predict_layers):
        own = prefix(shape.num_hidden_layers + depth)
        for name, original in ((f"{own}embed_tokens.weight", embedding), (f"{own}shared_head.head.weight", head)):
            if not equal(found[name], original):
                raise BadInput(f"{checkpoint.folder}: tensor {name} differs from the target's, of which it is a copy")
    return shape, found


def _modules(config: Config) -> int:
    """How many; transformers 5 also knows the count as num_mtp_layers."""
    given = {name: config.fields.get(name) for name in ("num_nextn_predict_layers", "num_mtp_layers")}
    if None not in given.values() and len(set(given.values())) > 1:
        config.refuse("num_nextn_predict_layers is {}, but num_mtp_layers is {}".format(*given.values()))
    name = "num_mtp_layers" if given["num_nextn_predict_layers"] is None else "num_nextn_predict_layers"
    return config.integer(name, least=0) if given[name] is not None else 0


def read_shape(config: Config) -> Shape:
    """The config's sizes. What only other generations have is refused where it is given."""
    config.one_of("hidden_act", "silu")
    for name, only in (("scoring_func", "sigmoid"), ("topk_method", "noaux_tc"), ("moe_layer_freq", 1)):
        if config.fields.get(name, only) != only:
            config.refuse(f"{name} is {config.fields[name]!r}, and the modules of DeepSeek-V3 have {only!r}")
    refuse_unread(config, "rope_interleave")
    if not _modules(config):
        config.refuse("num_nextn_predict_layers is 0 or missing, and the file holds layers after the last")
    return config.sizes(
        Shape, num_nextn_predict_layers=_modules(config), heads=_heads(config), routing=_routing(config)
    )


def _heads(config: Config) -> LatentHeads:
    heads = config.sizes(
        LatentHeads,
        q_lora_rank=None if config.fields.get("q_lora_rank") is None else config.integer("q_lora_rank"),
        rope=read_rope(config),
        rope_interleave=config.flag("rope_interleave", default=True),
        stretch=_stretch(config),
    )
    groups = config.fields.get("num_key_value_heads")
    if groups is not None and groups != heads.num_attention_heads:
        config.refuse(f"num_key_value_heads is {groups}, and latent attention has one for each of its heads")
    if heads.qk_rope_head_dim % 2:
        config.refuse(f"qk_rope_head_dim is {heads.qk_rope_head_dim}, which are no pairs")
    return heads


def _stretch(config: Config) -> float:
    """DeepSeek's addition to YaRN: scores grow with the context, by the square of 0.1 mscale_all_dim ln(factor) + 1."""
    given = config.object("rope_parameters" if config.fields.get("rope_parameters") else "rope_scaling")
    if (given.fields.get("rope_type") or given.fields.get("type") or "default") == "default":
        return 1.0
    if not given.fields.get("mscale_all_dim"):
        return 1.0
    factor = given.number("factor")
    return (0.1 * given.number("mscale_all_dim") * math.log(factor) + 1.0) ** 2 if factor > 1 else 1.0


def _routing(config: Config) -> Routing:
    r = config.sizes(Routing, norm_topk_prob=config.flag("norm_topk_prob", default=True))
    group = r.n_routed_experts // r.n_group
    if r.n_routed_experts % r.n_group or group < 2:
        config.refuse(f"{r.n_routed_experts} experts do not divide into {r.n_group} groups of two or more")
    if r.topk_group > r.n_group or r.num_experts_per_tok > r.topk_group * group:
        config.refuse(f"{r.num_experts_per_tok} experts cannot be chosen from {r.topk_group} of {r.n_group} groups")
    return r


LAYOUTS = (Layout("the modules of a DeepSeek-V3", has_modules, load),)
