"""Reading the rotary embedding that a config asks for, in the keys of transformers 4 and of transformers 5."""

import math
from collections.abc import Mapping
from typing import Any

from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.networks.rope import Linear, Llama3, Proportional, Rope, Scaling, Unscaled, Yarn

KINDS = ("default", "linear", "dynamic", "llama3", "yarn", "proportional")


def read_rope(config: Config, layer_type: str | None = None) -> Rope:
    """From `rope_parameters` (5), or `rope_theta` and `rope_scaling` (4). Raises BadInput.

    Where a config has both, transformers 5 reads `rope_scaling` alone and others do not: they must say the same.
    layer_type  which entry to read where `rope_parameters` holds one for each type of layer
    """
    new, old = config.object("rope_parameters").fields, config.object("rope_scaling").fields
    if layer_type is not None and isinstance(new.get(layer_type), Mapping):
        new = new[layer_type]
    if any(isinstance(value, Mapping) for value in new.values()):
        config.refuse("rope_parameters differ by type of layer, and this layout has one for all layers")
    if new and old and _scaled(new) != _scaled(old):
        config.refuse(f"rope_parameters say {_scaled(new)}, and rope_scaling says {_scaled(old)}: keep the right one")
    given = new or old
    theta = Config(
        config.path,
        {"rope_theta": config.fields.get("rope_theta"), "rope_parameters": _theta(new), "rope_scaling": _theta(old)},
    )
    rope = Rope(theta.rope_theta(), _scaling(config, given), original_context(config, given))
    if not isinstance(rope.scaling, Proportional) and given.get("partial_rotary_factor") not in (None, 1, 1.0):
        config.refuse(f"partial_rotary_factor is {given['partial_rotary_factor']!r}, and these heads turn as a whole")
    # transformers 4 let max_position_embeddings overrule the factor, transformers 5 does not.
    if isinstance(rope.scaling, Yarn) and not new and old.get("original_max_position_embeddings"):
        stretched = config.number("max_position_embeddings")
        if stretched != rope.scaling.factor * rope.scaling.original:
            config.refuse(f"rope_scaling stretches {rope.scaling.original} by {rope.scaling.factor} to {stretched}")
    return rope


def original_context(config: Config, given: Mapping[str, Any]) -> int | None:
    """Of `dynamic`, which leaves angles as they are up to there; further on they are those of the longest text so far,
    and cached keys keep the angles that they were made with: no function of the text, and not implemented here.

    vLLM stretches every angle instead, as if the text were `factor` times as long.
    """
    dynamic = (given.get("rope_type") or given.get("type")) == "dynamic"
    return config.integer("max_position_embeddings") if dynamic else None


def _theta(new: Mapping[str, Any]) -> dict[str, Any]:
    return {"rope_theta": new.get("rope_theta")}


def _scaled(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the scaling, in the words of transformers 5."""
    known = {name: value for name, value in given.items() if name not in ("rope_theta", "type") and value is not None}
    return {"rope_type": given.get("type") or "default"} | known


def _scaling(config: Config, given: Mapping[str, Any]) -> Scaling:
    kind = given.get("rope_type") or given.get("type") or "default"
    if kind not in KINDS:
        config.refuse(f"rope_type is {kind!r}, expected {' or '.join(map(repr, KINDS))}")
    asked = Config(f"{config.path} (rope parameters)", given)
    if kind == "linear":
        return Linear(asked.number("factor"))
    if kind == "dynamic":
        asked.number("factor")
    if kind == "llama3":
        low, high = asked.number("low_freq_factor"), asked.number("high_freq_factor")
        if low >= high:
            asked.refuse(f"low_freq_factor {low} is not below high_freq_factor {high}")
        return Llama3(asked.number("factor"), low, high, _original(config, asked))
    if kind == "yarn":
        return _yarn(asked, _original(config, asked))
    if kind == "proportional":
        part = asked.number("partial_rotary_factor") if given.get("partial_rotary_factor") is not None else 1.0
        return Proportional(part, asked.number("factor") if given.get("factor") is not None else 1.0)
    return Unscaled()


def _yarn(asked: Config, original: float) -> Yarn:
    factor, given = asked.number("factor"), asked.fields
    if given.get("attention_factor") is not None:
        scale = asked.number("attention_factor")
    elif given.get("mscale") and given.get("mscale_all_dim"):
        scale = magnitude(factor, asked.number("mscale")) / magnitude(factor, asked.number("mscale_all_dim"))
    else:
        scale = magnitude(factor, 1.0)
    fast = asked.number("beta_fast") if given.get("beta_fast") else 32.0
    slow = asked.number("beta_slow") if given.get("beta_slow") else 1.0
    return Yarn(factor, original, fast, slow, asked.flag("truncate", default=True), scale)


def magnitude(factor: float, weight: float) -> float:
    """Of YaRN, of this weight."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1


def _original(config: Config, asked: Config) -> float:
    """The context before stretching; where the parameters do not say, it is max_position_embeddings."""
    for where in (config, asked):
        if where.fields.get("original_max_position_embeddings") is not None:
            return where.number("original_max_position_embeddings")
    return config.number("max_position_embeddings")
