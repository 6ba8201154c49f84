"""The released layouts of DSpark and of DeepSpec's DFlash: DeepSpec's (afdfa7c) and that of speculators (0.9.0).

DeepSpec stores embedding and head with the drafter (frozen copies of the target's), and has no draft vocabulary.
Speculators adds the heads of DSpark to its DFlash, under the same names: previous tokens are the target's (markov_w1),
and the bias is over the draft vocabulary (markov_w2).
"""

from collections.abc import Callable
from dataclasses import fields

from torch import Tensor

from refengine.decoder.checkpoints.layouts import block_backbone
from refengine.decoder.checkpoints.layouts.deepspec_families import Family, read_gemma4, read_qwen3
from refengine.decoder.checkpoints.layouts.dflash import read_layout, tensors_of
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, named, says
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.from_target import on_target, refuse_other_target
from refengine.decoder.checkpoints.reading.sliding import sliding_layers
from refengine.decoder.checkpoints.reading.tensors import Table
from refengine.decoder.checkpoints.reading.unread_fields import refuse_unread
from refengine.decoder.drafters.dspark import DSpark, Shape
from refengine.decoder.drafters.dspark_schedule import Load
from refengine.decoder.protocols import Target

DEEPSPEC: dict[str, Callable[[Config], Family]] = {"Qwen3DSparkModel": read_qwen3, "Gemma4DSparkModel": read_gemma4}


def load_deepspec(
    checkpoint: Checkpoint, target: Target, threshold: float = 0.0, load: Load | None = None, markov: bool = True
) -> DSpark:
    """threshold, load, markov: see `DSpark`."""
    shape = read_shape(checkpoint.config)
    found = checkpoint.read(table(shape))
    refuse_other_target(
        checkpoint.config,
        vocab_size=(shape.vocab_size, target.vocabulary),
        hidden_size=(shape.hidden_size, target.width),
        num_target_layers=(shape.num_target_layers, target.layers),
    )
    return _drafter(checkpoint.config, shape, on_target(found, target), threshold, load, markov)


def load_speculators(
    checkpoint: Checkpoint, target: Target, threshold: float = 0.0, load: Load | None = None, markov: bool = True
) -> DSpark:
    """threshold, load, markov: see `DSpark`."""
    shape = speculators_shape(checkpoint.config, target)
    tensors = tensors_of(checkpoint, read_layout(checkpoint.config, target), target, heads(shape))
    return _drafter(checkpoint.config, shape, tensors, threshold, load, markov)


def _drafter(
    config: Config, shape: Shape, tensors: dict[str, Tensor], threshold: float, load: Load | None, markov: bool
) -> DSpark:
    if (threshold > 0 or load) and not shape.enable_confidence_head:
        config.refuse("a confidence threshold or a load was given, and this checkpoint has no confidence head")
    if not (markov or shape.markov_rank):
        config.refuse("the Markov head was switched off, and this checkpoint has none")
    return DSpark(shape, tensors, threshold, load, markov)


def speculators_shape(config: Config, target: Target) -> Shape:
    """What the config says: a DFlash of speculators, and the switches of the heads."""
    dflash = read_layout(config, target).shape
    rank = config.integer("markov_rank", least=0)
    confidence = config.flag("enable_confidence_head")
    shape = Shape(
        **{field.name: getattr(dflash, field.name) for field in fields(dflash)},
        num_target_layers=target.layers,
        markov_rank=rank,
        markov_head_type=config.one_of("markov_head_type", "vanilla", "gated", "rnn") if rank else "",
        enable_confidence_head=confidence,
        confidence_head_with_markov=config.flag("confidence_head_with_markov") if confidence else False,
    )
    _refuse_lonely_confidence(config, shape)
    return shape


def read_shape(config: Config) -> Shape:
    """The config's sizes, contradictions refused."""
    kind = config.architecture()
    if kind not in DEEPSPEC:
        config.refuse(f"architectures is {kind}, expected {' or '.join(DEEPSPEC)}")
    family = DEEPSPEC[kind](config)
    refuse_unread(config, *family.read)
    rank = config.integer("markov_rank", least=0)
    confidence = config.flag("enable_confidence_head")
    with_markov = config.flag("confidence_head_with_markov") if confidence else False
    layers, vocabulary, block = (config.integer(x) for x in ("num_hidden_layers", "vocab_size", "block_size"))
    shape = config.sizes(
        Shape,
        num_key_value_heads=family.num_key_value_heads,
        head_dim=family.head_dim,
        rope=family.rope,
        taps=tuple(layer + 1 for layer in config.integers("target_layer_ids")),  # layer l writes hs[l + 1]
        mask_token_id=config.integer("mask_token_id", least=0),
        windows=(None,) * layers,
        gemma4=family.gemma4,
        attention_k_eq_v=family.attention_k_eq_v,
        markov_rank=rank,
        markov_head_type=config.one_of("markov_head_type", "vanilla", "gated", "rnn") if rank else "",
        enable_confidence_head=confidence,
        confidence_head_with_markov=with_markov,
        draft_vocab_size=vocabulary,
        shifted=True,
        length=block,
        final_logit_softcapping=family.final_logit_softcapping,
    )
    _refuse_contradictions(config, shape)
    return shape


def _refuse_contradictions(config: Config, s: Shape) -> None:
    if sliding_layers(config):
        config.refuse("sliding-window layers are not part of this layout")
    if config.flag("tie_word_embeddings", default=False):
        config.refuse("tie_word_embeddings is true, and this layout stores embedding and head apart")
    block_backbone.refuse_contradictions(config, s)
    _refuse_lonely_confidence(config, s)
    for tap in s.taps:
        # hs[L] of transformers is normed, and training tapped the raw output: the last layer cannot be served.
        if not 0 <= tap < s.num_target_layers:
            config.refuse(f"target_layer_ids has {tap - 1}, outside -1 .. {s.num_target_layers - 2}")


def _refuse_lonely_confidence(config: Config, s: Shape) -> None:
    if s.confidence_head_with_markov and not s.markov_rank:
        config.refuse("confidence_head_with_markov is true, and markov_rank is 0")


def table(s: Shape) -> Table:
    """Every tensor of the file, with its shape."""
    own = {f"{name}.weight": (s.vocab_size, s.hidden_size) for name in ("embed_tokens", "lm_head")}
    return own | block_backbone.table(s) | heads(s)


def heads(s: Shape) -> dict[str, tuple[int, ...]]:
    """The tensors of the heads."""
    names: dict[str, tuple[int, ...]] = {}
    rank, hidden = s.markov_rank, s.hidden_size
    if rank:
        names["markov_head.markov_w1.weight"] = (s.vocab_size, rank)
        names["markov_head.markov_w2.weight"] = (s.draft_vocab_size, rank)
    if s.markov_head_type == "gated":
        names |= {"markov_head.gate_proj.weight": (rank, hidden + rank), "markov_head.gate_proj.bias": (rank,)}
    if s.markov_head_type == "rnn":
        joint = {"weight": (3 * rank, 2 * rank + hidden), "bias": (3 * rank,)}
        names |= {f"markov_head.joint_proj.{name}": shape for name, shape in joint.items()}
    if s.enable_confidence_head:
        features = hidden + (rank if s.confidence_head_with_markov else 0)
        names |= {"confidence_head.proj.weight": (1, features), "confidence_head.proj.bias": (1,)}
    return names


LAYOUTS = (
    Layout("DSpark of DeepSpec", named(*DEEPSPEC), load_deepspec),
    Layout("DSpark of speculators", says("speculators_model_type", "dspark"), load_speculators),
)
