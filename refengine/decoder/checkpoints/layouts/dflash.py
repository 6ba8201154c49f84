"""The layouts of DFlash: z-lab's (44947fb), that of transformers (5.23) and that of speculators (0.9.0, c05b95b3).

All hold one backbone; they differ in where a config says its fields, in the meaning of tap ids and windows, and in what
is borrowed from the target. DeepSpec's own DFlash is a DSpark file with both heads off: see `dspark.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from refengine.decoder.checkpoints.layouts import block_backbone
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, named, says
from refengine.decoder.checkpoints.reading.config import Config, speculative_tokens
from refengine.decoder.checkpoints.reading.draft_vocabulary import refuse_bad_maps, refuse_larger
from refengine.decoder.checkpoints.reading.from_target import (
    embedding,
    head,
    on_target,
    refuse_other_target,
    written_embeddings,
)
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.checkpoints.reading.sliding import sliding_layers, width
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.dflash import DFlash, Shape
from refengine.decoder.networks.windows import Window
from refengine.decoder.protocols import Target

SPECULATORS = {"dflash": False, "dspark": True}  # and whether the anchor's slot is used where a config does not say
FACTORS = ("input_embedding_scale", "output_multiplier")
TRANSFORMERS = {"fc.weight": "encoder.fc.weight", "hidden_norm.weight": "encoder.output_norm_enc.weight"}


@dataclass(frozen=True)
class Released:
    """What a layout says besides sizes: does it draft by argmax, may it hold embeddings, which tensors are renamed,
    and which factors it has."""

    shape: Shape
    greedy: bool
    self_contained: bool
    renamed: dict[str, str]
    embedded: float | None = None  # a factor on the target's raw embeddings; None: what its module writes
    read_out: float | None = None  # a factor on the logits


def load(checkpoint: Checkpoint, target: Target, greedy: bool | None = None) -> DFlash:
    """greedy: draft by argmax and report no q; None: as released."""
    released = read_layout(checkpoint.config, target)
    tensors = tensors_of(checkpoint, released, target)
    return DFlash(released.shape, tensors, released.greedy if greedy is None else greedy)


def tensors_of(
    checkpoint: Checkpoint,
    released: Released,
    target: Target,
    heads: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> dict[str, Tensor]:
    """Every tensor under z-lab's names, in the target's dtype and on its device, the target's own where it is not
    stored. heads: of DSpark."""
    found = checkpoint.read({**table(released, set(checkpoint.shapes)), **heads})
    refuse_bad_maps(checkpoint.config, released.shape, found)
    tensors = on_target({ours: found.pop(theirs) for ours, theirs in released.renamed.items()} | found, target)
    if "embed_tokens.weight" not in tensors:
        raw = released.self_contained or released.embedded is not None
        tensors["embed_tokens.weight"] = embedding(target) if raw else written_embeddings(target)
    if "lm_head.weight" not in tensors:
        drafted = tensors["t2d"] if "t2d" in tensors else slice(None)
        tensors["lm_head.weight"] = head(target)[drafted]
    for name, factor in (("embed_tokens.weight", released.embedded), ("lm_head.weight", released.read_out)):
        tensors[name] = tensors[name] * factor if factor is not None else tensors[name]
    return tensors


def read_layout(config: Config, target: Target) -> Released:
    """The config, held to the target."""
    kind = config.architecture()
    speculators = config.fields.get("speculators_model_type") in SPECULATORS
    released = (_speculators if speculators else NAMED[kind])(config, target)
    shape = released.shape
    block_backbone.refuse_contradictions(config, shape)
    refuse_other_target(
        config, vocab_size=(shape.vocab_size, target.vocabulary), hidden_size=(shape.hidden_size, target.width)
    )
    refuse_larger(config, shape)
    return released


def table(released: Released, there: set[str]) -> Table:
    """Every tensor of the file, with its shape. `there`: the names in the file, some of which it may leave out."""
    s = released.shape
    names: dict[str, tuple[int, ...] | tuple[tuple[int, ...], torch.dtype]] = {
        released.renamed.get(name, name): shape for name, shape in block_backbone.table(s).items()
    }
    if not released.self_contained:
        return names
    # 0.9.0 writes neither, older and newer versions write both.
    if "embed_tokens.weight" in there:
        names["embed_tokens.weight"] = (s.vocab_size, s.hidden_size)
    if "lm_head.weight" in there:
        names["lm_head.weight"] = (s.draft_vocab_size, s.hidden_size)
    if s.draft_vocab_size < s.vocab_size:
        names["d2t"], names["t2d"] = ((s.draft_vocab_size,), torch.int64), ((s.vocab_size,), torch.bool)
    return names


def _zlab(config: Config, target: Target) -> Released:
    """Tap l reads hs[l + 1], slot 0 is not used, drafts are greedy.

    Sliding layers as in its later code (1012959) and in SpecForge's training: each row of the block sees the W - 1
    before it and none after it, or as many after it where `is_causal` is false. The code of 44947fb left windows to
    the attention backend. Factors on embeddings and logits are the later code's too.
    """
    inner = config.object("dflash_config")
    refuse_unread(config, "dflash_config", *FACTORS)
    refuse_unread(inner, *FACTORS)
    size = _either(config, inner, "block_size").integer("block_size")
    mask = _either(inner, config, "mask_token_id").integer("mask_token_id", least=0)
    refuse_other_target(config, num_target_layers=(config.integer("num_target_layers"), target.layers))
    if inner.flag("causal", default=False) or config.flag("is_causal", default=False):
        config.refuse("it asks for causal attention inside the block, and this layout's code has none")
    reach, causal = width(config), config.flag("is_causal", default=True)
    windows = _windows(config, None if reach is None else Window(reach - 1, by_row=True, causal=causal))
    shape = _shape(config, config.integer("vocab_size"), _layer_outputs(inner, target), size, mask, windows)
    embedded, read_out = (_factor(inner, config, name) for name in FACTORS)
    return Released(shape, greedy=True, self_contained=False, renamed={}, embedded=embedded, read_out=read_out)


def _factor(inner: Config, config: Config, name: str) -> float | None:
    """One of FACTORS, inside dflash_config or outside; None where it is not given."""
    where = _either(inner, config, name)
    return where.number(name) if where.fields.get(name) is not None else None


def _transformers(config: Config, target: Target) -> Released:
    """As z-lab, but drafts are sampled where the target's are, and sliding layers see |q - k| <= W.

    Tap l reads hs[l + 1] since transformers 5.23; before, the layers were captured one off.
    """
    refuse_unread(config)
    if config.fields.get("layer_types") is None:  # the class's default
        types = ["sliding_attention"] * config.integer("num_hidden_layers")
        config = Config(config.path, {**config.fields, "layer_types": types})
    reach = width(config)
    windows = _windows(config, None if reach is None else Window(reach, by_row=True))
    mask, size = config.integer("mask_token_id", least=0), config.integer("block_size")
    shape = _shape(config, target.vocabulary, _layer_outputs(config, target), size, mask, windows)
    return Released(shape, greedy=False, self_contained=False, renamed=TRANSFORMERS)


def _speculators(config: Config, target: Target) -> Released:
    """Taps are indices of hidden states; sliding layers are causal inside the block unless the config denies it."""
    inner = config.object("transformer_layer_config")
    refuse_unread(config)
    refuse_unread(inner)
    causal = not config.flag("sliding_window_non_causal", default=False)
    reach = width(inner)
    windows = _windows(inner, None if reach is None else Window(reach, by_row=False, causal=causal))
    taps = config.integers("aux_hidden_state_layer_ids")
    if bad := [tap for tap in taps if not 0 <= tap < target.layers]:
        config.refuse(f"aux_hidden_state_layer_ids has {bad[0]}, outside 0 .. {target.layers - 1} of the target")
    mask, size = config.integer("mask_token_id", least=0), config.integer("block_size")
    shifted = config.flag("sample_from_anchor", default=SPECULATORS[config.fields["speculators_model_type"]])
    slots = size if shifted else size - 1
    said = speculative_tokens(config)
    length = slots if said is None else said
    if length > slots:
        config.refuse(f"speculative_tokens is {length}, and a block of {size} has {slots} slots to draft from")
    vocabulary = inner.integer("vocab_size")
    shape = _shape(
        inner, vocabulary, taps, size, mask, windows,
        draft_vocab_size=config.integer("draft_vocab_size"), shifted=shifted, length=length, angles="sliding_attention",
    )  # fmt: skip
    return Released(shape, greedy=False, self_contained=True, renamed={})


NAMED: dict[str, Callable[[Config, Target], Released]] = {
    "DFlashDraftModel": _zlab,
    "MuseGlimmerAssistantModel": _transformers,
}


def _shape(
    config: Config,
    vocabulary: int,
    taps: tuple[int, ...],
    block_size: int,
    mask: int,
    windows: tuple[Window | None, ...],
    draft_vocab_size: int | None = None,
    shifted: bool = False,
    length: int | None = None,
    angles: str | None = None,
) -> Shape:
    """The sizes that every layout says alike; without more, unshifted and over the whole vocabulary.

    angles  the type of layer whose angles serve all, where a config has them by type
    """
    config.one_of("hidden_act", "silu")
    return config.sizes(
        Shape,
        vocab_size=vocabulary,
        rope=read_rope(config, angles),
        taps=taps,
        block_size=block_size,
        mask_token_id=mask,
        windows=windows,
        draft_vocab_size=vocabulary if draft_vocab_size is None else draft_vocab_size,
        shifted=shifted,
        length=block_size - 1 if length is None else length,
    )


def _layer_outputs(config: Config, target: Target) -> tuple[int, ...]:
    """Layer l writes hidden state l + 1; -1 is the embedding. The last one is read after the final norm."""
    layers = config.integers("target_layer_ids")
    if bad := [layer for layer in layers if not -1 <= layer < target.layers]:
        config.refuse(f"target_layer_ids has {bad[0]}, outside -1 .. {target.layers - 1} of the target")
    return tuple(layer + 1 for layer in layers)


def _windows(config: Config, sliding: Window | None) -> tuple[Window | None, ...]:
    """One for each layer."""
    layers = sliding_layers(config)
    if layers and sliding is None:
        config.refuse("layer_types has sliding layers, and no sliding_window is set")
    return tuple(sliding if i in layers else None for i in range(config.integer("num_hidden_layers")))


def _either(first: Config, second: Config, name: str) -> Config:
    """Where a field stands that older and newer files have in different places; both must agree."""
    a, b = first.fields.get(name), second.fields.get(name)
    if a is not None and b is not None and a != b:
        first.refuse(f"{name} is {a!r}, but {second.path} says {b!r}")
    return second if a is None else first


LAYOUTS = (
    Layout("DFlash of z-lab", named("DFlashDraftModel"), load),
    Layout("DFlash of transformers", named("MuseGlimmerAssistantModel"), load),
    Layout("DFlash of speculators", says("speculators_model_type", "dflash"), load),
)
