"""Reading which layers of a drafter slide, and how wide their window is."""

from refengine.decoder.checkpoints.config import Config


def sliding_layers(config: Config) -> tuple[int, ...]:
    """The numbers of the sliding layers, from `layer_types`; a config without it has none. Raises BadInput."""
    layers = config.integer("num_hidden_layers")
    types = config.fields.get("layer_types") or ["full_attention"] * layers
    if len(types) != layers:
        config.refuse(f"layer_types has {len(types)} entries for num_hidden_layers {layers}")
    if unknown := set(types) - {"full_attention", "sliding_attention"}:
        config.refuse(f"layer_types has {sorted(unknown)[0]!r}, expected 'full_attention' or 'sliding_attention'")
    return tuple(i for i, kind in enumerate(types) if kind == "sliding_attention")


def width(config: Config) -> int | None:
    """`sliding_window`, None where it is null. transformers' Qwen3 drops it unless `use_sliding_window`."""
    dropped = config.fields.get("model_type") == "qwen3" and not config.flag("use_sliding_window", default=False)
    return None if dropped or config.fields.get("sliding_window") is None else config.integer("sliding_window")
