"""Reading which layers of a drafter slide, and how wide their window is."""

from refengine.decoder.checkpoints.reading.config import Config

FULL, SLIDING = "full_attention", "sliding_attention"


def sliding_layers(config: Config) -> tuple[int, ...]:
    """The numbers of the sliding layers, from `layer_types` or by Qwen's older rule. Raises BadInput."""
    layers, types = config.integer("num_hidden_layers"), config.fields.get("layer_types")
    if types is None:
        return _from(config, layers)
    if not isinstance(types, list):
        config.refuse(f"layer_types is {types!r}, expected a list")
    if len(types) != layers:
        config.refuse(f"layer_types has {len(types)} entries for num_hidden_layers {layers}")
    if unknown := [kind for kind in types if kind not in (FULL, SLIDING)]:
        config.refuse(f"layer_types has {unknown[0]!r}, expected 'full_attention' or 'sliding_attention'")
    return tuple(i for i, kind in enumerate(types) if kind == SLIDING)


def _from(config: Config, layers: int) -> tuple[int, ...]:
    """transformers' configs of Qwen before there were types: with `use_sliding_window` all from `max_window_layers`."""
    if not config.flag("use_sliding_window", default=False) or config.fields.get("sliding_window") is None:
        return ()
    named = config.fields.get("max_window_layers") is not None
    first = config.integer("max_window_layers", least=0) if named else 28  # the classes' default
    return tuple(range(first, layers))


def refuse_sliding(config: Config) -> None:
    """Raise BadInput for sliding layers, in a layout whose released code has none: engines differ about them."""
    types = config.fields.get("layer_types") or []  # of any length: many configs are the target's, cut down
    if (
        not isinstance(types, list)
        or set(map(str, types)) - {FULL}
        or _from(config, config.integer("num_hidden_layers"))
    ):
        config.refuse("layer_types or use_sliding_window ask for sliding layers, and this layout has none")


def width(config: Config) -> int | None:
    """`sliding_window`, None where it is null. transformers' Qwen3 drops it unless `use_sliding_window`."""
    dropped = config.fields.get("model_type") == "qwen3" and not config.flag("use_sliding_window", default=False)
    return None if dropped or config.fields.get("sliding_window") is None else config.integer("sliding_window")
