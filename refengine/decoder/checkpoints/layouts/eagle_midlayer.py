"""Configs of drafters whose one layer is called `midlayer`: SafeAILab's EAGLE-3 and SpecForge's, and what DART's and
Amazon's P-EAGLE share with them."""

from dataclasses import replace

from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.rope import magnitude, original_context, read_rope
from refengine.decoder.checkpoints.reading.sliding import refuse_sliding
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.eagle3 import Shape
from refengine.decoder.drafters.eagle_trees import DynamicTree
from refengine.decoder.networks.feature_recurrence import Plan
from refengine.decoder.networks.rope import Linear, Rope, Yarn
from refengine.decoder.protocols import Target

LAYOUTS = ()  # it serves others
# Fields by which layouts that build on SafeAILab's configs say what they are: DART, Amazon's P-EAGLE, Medusa.
DESCENDANTS = ("draft_length", "ptd_token_id", "medusa_num_heads")


def safeailab(config: Config, target: Target) -> tuple[Shape, Plan]:
    return midlayer(config, target, even_width(config), safeailab_rope(config)), DynamicTree()


def specforge(config: Config, target: Target) -> tuple[Shape, Plan]:
    """What it feeds back is never normed, whatever `norm_output` says: without it, its head reads it so too.

    A layer named in eagle_config writes the hidden state after it; the target meets them in their order.
    """
    named = config.fields.get("head_dim") is not None
    width = config.integer("head_dim") if named else even_width(config)
    eagle = config.object("eagle_config")
    refuse_unread(eagle, "eagle_aux_hidden_state_layer_ids")
    taps = None
    if eagle.fields.get("eagle_aux_hidden_state_layer_ids") is not None:
        taps = tuple(sorted({layer + 1 for layer in eagle.integers("eagle_aux_hidden_state_layer_ids")}))
    shape = midlayer(
        config, target, width, specforge_rope(config, width), taps, ("eagle_config", "fc_norm", "norm_output")
    )
    fc_norm, head_norm = config.flag("fc_norm", default=False), config.flag("norm_output", default=True)
    return replace(shape, fc_norm=fc_norm, head_norm=head_norm), DynamicTree()


def midlayer(
    config: Config,
    target: Target,
    head_dim: int,
    rope: Rope,
    taps: tuple[int, ...] | None = None,
    read: tuple[str, ...] = (),
) -> Shape:
    """The sizes of one `midlayer` over three taps, those of every release unless given.

    read  what this layout reads besides: see `unread_fields.py`
    """
    config.one_of("hidden_act", "silu")
    refuse_unread(config, *read)
    refuse_sliding(config)
    if config.integer("num_hidden_layers") != 1:
        config.refuse("num_hidden_layers is not 1, and this layout has one layer")
    if taps is None and len(taps := default_taps(target.layers)) != 3:
        config.refuse(f"layers 2, L/2 and L - 3 of a target of {target.layers} layers are not three")
    if len(taps) != 3:
        config.refuse(f"it taps {len(taps)} layers, and this layout has three taps")
    return config.sizes(
        Shape,
        target_hidden_size=config.integer("target_hidden_size", default=config.integer("hidden_size")),
        num_key_value_heads=config.integer("num_key_value_heads", default=config.integer("num_attention_heads")),
        head_dim=head_dim,
        rope=rope,
        first="midlayer",
        taps=taps,
    )


def even_width(config: Config) -> int:
    """The width of a head where the config does not say it."""
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    if hidden % heads:
        config.refuse(f"hidden_size {hidden} does not divide over {heads} heads")
    return hidden // heads


def default_taps(layers: int) -> tuple[int, ...]:
    """The hidden states that enter layers 2, L/2 and L - 3, in the order in which the target meets them."""
    return tuple(sorted({2, layers // 2, layers - 3}))


def safeailab_rope(config: Config) -> Rope:
    """SafeAILab's code falls back to 10000, whatever the target's base is, and its released configs rely on it.

    Where it scales (linear, dynamic) it turns with 10000 too, whatever `rope_theta` says.
    """
    scaling = config.object("rope_scaling")
    kind = scaling.fields.get("type")
    if kind == "linear":
        return Rope(10000.0, Linear(scaling.number("factor")))
    if kind == "dynamic":
        return Rope(10000.0, limit=original_context(config, scaling.fields))
    return Rope(_with_theta(config).rope_theta())


def specforge_rope(config: Config, width: int) -> Rope:
    """As transformers' but for two things: `dynamic` turns from the start on as over 20 positions more than the context
    (its angles are made beforehand), and YaRN's magnitude is a quotient even where mscale_all_dim is 0."""
    rope = read_rope(_with_theta(config))
    asked = config.object("rope_scaling" if config.fields.get("rope_scaling") else "rope_parameters")
    if rope.limit is not None:
        stretched = 1 + 20 * asked.number("factor") / rope.limit
        return Rope(rope.theta * stretched ** (width / (width - 2)), limit=rope.limit + 20)
    if isinstance(scaling := rope.scaling, Yarn) and asked.fields.get("mscale") is not None:
        over, under = (asked.fields.get(name) or 0.0 for name in ("mscale", "mscale_all_dim"))
        quotient = magnitude(scaling.factor, over) / magnitude(scaling.factor, under)
        return replace(rope, scaling=replace(scaling, magnitude=quotient))
    return rope


def _with_theta(config: Config) -> Config:
    """Where no base is said it is 10000."""
    if config.fields.get("rope_theta") is None and not config.fields.get("rope_parameters"):
        return Config(config.path, {**config.fields, "rope_theta": 10000.0})
    return config
