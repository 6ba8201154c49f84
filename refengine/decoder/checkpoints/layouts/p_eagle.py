"""The layouts of P-EAGLE: EAGLE-3 with a mask token and the mask's feature.

Speculators (0.9.0) adds them to its own EAGLE-3. Amazon's releases are SafeAILab's EAGLE-3 with further plain layers,
their mask token `ptd_token_id`, as aws-neuron/nkipy (b91c980) reads them; no such file could be opened. How many tokens
are drafted is not in them.
"""

from dataclasses import replace
from math import prod

from refengine.decoder.checkpoints.layouts.eagle3 import hold_to_target, read_shape, table
from refengine.decoder.checkpoints.layouts.eagle_midlayer import even_width, midlayer
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, says
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.draft_vocabulary import refuse_bad_maps
from refengine.decoder.checkpoints.reading.from_target import on_target
from refengine.decoder.checkpoints.reading.rope import read_rope
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.drafters.eagle3 import Eagle3, Shape
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.drafters.p_eagle import MaskSlots
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence
from refengine.decoder.protocols import Target


def load_speculators(checkpoint: Checkpoint, target: Target, length: int | None = None) -> FeatureRecurrence:
    """length: drafted tokens a round; None: as the config says."""
    shape, chain = read_shape(checkpoint.config, target)
    assert isinstance(chain, Chain)
    feature = (1, 1, len(shape.taps) * shape.target_hidden_size)
    names = {**table(shape, set(checkpoint.shapes)), "mask_hidden": feature}
    return _drafter(checkpoint, target, shape, names, "mask_token_id", length or chain.length)


def load_amazon(checkpoint: Checkpoint, target: Target, gamma: int = 4) -> FeatureRecurrence:
    """gamma: drafted tokens a round."""
    config, there = checkpoint.config, checkpoint.shapes
    layers = config.integer("num_hidden_layers")
    head_dim = config.integer("head_dim") if config.fields.get("head_dim") is not None else even_width(config)
    one = Config(config.path, {**config.fields, "num_hidden_layers": 1})
    shape = replace(
        midlayer(
            one, target, head_dim, read_rope(config), read=("norm_before_residual", "parallel_drafting", "ptd_token_id")
        ),
        num_hidden_layers=layers,
        attention_bias=config.flag("attention_bias", default=False),
        norm_before_residual=config.flag("norm_before_residual", default=False),
    )
    hold_to_target(config, shape, target)
    names = dict(table(shape, {*there, "embed_tokens.weight"}))  # trained with the drafter
    feature = there.get("mask_hidden", ())
    right = prod(feature) == len(shape.taps) * shape.target_hidden_size  # of whatever rank
    names["mask_hidden"] = feature if right else (1, len(shape.taps) * shape.target_hidden_size)
    return _drafter(checkpoint, target, shape, names, "ptd_token_id", gamma)


def _drafter(
    checkpoint: Checkpoint, target: Target, shape: Shape, names: Table, mask: str, length: int
) -> FeatureRecurrence:
    """The drafter of these tensors. mask: the field that says the mask token."""
    config = checkpoint.config
    token = config.integer(mask, least=0)
    if token >= shape.vocab_size:
        config.refuse(f"{mask} {token} is outside the vocabulary of {shape.vocab_size} tokens")
    found = checkpoint.read(names)
    refuse_bad_maps(config, shape, found)
    tensors = on_target(found, target)
    feature = tensors["mask_hidden"].reshape(1, -1)
    return FeatureRecurrence(Eagle3(shape, tensors), MaskSlots(length, token, feature))


LAYOUTS = (
    Layout("P-EAGLE of speculators", says("speculators_model_type", "peagle"), load_speculators),
    Layout("P-EAGLE of Amazon", says("ptd_token_id"), load_amazon),
)
