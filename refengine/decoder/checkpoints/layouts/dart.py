"""The released layout of DART (fvliang/DART 13f34a5), and where its n-gram store is.

`config.json` and `model.safetensors` are one repository, the n-gram store (`full.trie`, or `small.trie`) another.
Embeddings are the target's: the released code overwrites whatever the file has.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch

from refengine.decoder.checkpoints.layouts.dart_ngrams import read_trie
from refengine.decoder.checkpoints.layouts.eagle3 import hold_to_target
from refengine.decoder.checkpoints.layouts.eagle3 import table as eagle3_table
from refengine.decoder.checkpoints.layouts.eagle_midlayer import even_width, midlayer, safeailab_rope
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, says
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.draft_vocabulary import refuse_bad_maps
from refengine.decoder.checkpoints.reading.from_target import embedding, on_target
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.drafters.dart import TreeSearch, drafter
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.drafters.eagle3 import Shape
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

STORES = ("full.trie", "small.trie")


def load(
    checkpoint: Checkpoint, target: Target, ngram: Path | None = None, tree: Mapping[str, int] = MappingProxyType({})
) -> FeatureRecurrence:
    """ngram: its n-gram store, a file or a folder that has one; None: in its own folder, or in `ngram` beside it.

    tree: sizes of a `TreeSearch` other than the released ones
    """
    config = checkpoint.config
    shape = read_shape(config, target)
    found, lent = checkpoint.read(table(shape, set(checkpoint.shapes))), embedding(target)
    refuse_bad_maps(config, shape, found)
    own = found.pop("embed_tokens.weight", None)
    if own is not None and not torch.equal(own.to(lent), lent):
        config.refuse("embed_tokens.weight is not the target's, which the released code puts in its place")
    eos = target.lends.eos() if target.lends else None
    search = TreeSearch(config.integer("draft_length"), load_store(checkpoint.folder, target, ngram), eos, **tree)
    return drafter(shape, on_target(found, target) | {"embed_tokens.weight": lent}, search)


def read_shape(config: Config, target: Target) -> Shape:
    """The config's sizes, held to the target."""
    if config.flag("attention_bias", default=False) or config.flag("mlp_bias", default=False):
        config.refuse("attention_bias or mlp_bias is true, and biases are not part of this layout")
    width = config.integer("head_dim") if "head_dim" in config.fields else even_width(config)
    shape = midlayer(config, target, width, safeailab_rope(config))
    hold_to_target(config, shape, target)
    if shape.hidden_size != target.width:
        config.refuse(f"hidden_size is {shape.hidden_size}, and the target's embeddings have width {target.width}")
    return shape


def table(shape: Shape, there: set[str]) -> Table:
    """Every tensor of the file, with its shape: those of EAGLE-3, and what stands in a MASK row."""
    return {**eagle3_table(shape, there), "midlayer.mask_rep": (2 * shape.hidden_size,)}


def load_store(folder: Path, target: Target, ngram: Path | None) -> Trie:
    """The n-gram store of the drafter in `folder`, held to the target's vocabulary."""
    path = find_store(folder, ngram)
    store = read_trie(path)
    if store.order > 4:
        raise BadInput(f"{path}: a store of order {store.order}, and only orders up to 4 are implemented here")
    if int(store.tokens.max()) >= target.vocabulary:
        raise BadInput(f"{path}: token {store.tokens.max()} is outside the target's {target.vocabulary} tokens")
    return store


def find_store(folder: Path, ngram: Path | None) -> Path:
    """The file that holds the store; the full one where there are two, as in the released code."""
    if ngram is not None and not ngram.is_dir():
        return ngram
    places = [ngram] if ngram is not None else [folder, folder.parent / "ngram"]
    for place in places:
        for name in STORES:
            if (place / name).is_file():
                return place / name
    raise BadInput(f"{places[0]}: no {' or '.join(STORES)}; a DART drafter needs its n-gram store: --ngram FILE.trie")


LAYOUTS = (Layout("DART", says("draft_length"), load),)
