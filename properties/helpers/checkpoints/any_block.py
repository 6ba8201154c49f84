"""Block drafters at random sizes, layout by layout, DFlash and DSpark: see `any_shape.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn import Embedding

from properties.helpers.checkpoints.any_shape import (
    Peer,
    Sizes,
    Words,
    attended,
    capped,
    linear,
    maybe,
    named,
    random_table,
    rest,
    shaken,
)

THRESHOLD = 0.4  # of a confidence, where there is one


@dataclass
class Backbone:
    """The network of every block drafter.

    near  rows [slots, 1], keys [context + slots] -> which keys rows of a sliding layer see
    own   embeddings and head in the file
    """

    sizes: Sizes
    model: Any
    words: Words
    taps: tuple[int, ...]
    slots: int
    mask: int
    sliding: list[bool]
    near: Callable[[Tensor, Tensor], Tensor]
    own: bool
    cap: float | None = None

    def __post_init__(self) -> None:
        sizes, source, hidden = self.sizes, self.sizes.source, self.sizes.hidden
        self.stack = [shaken(sizes.layer(), source) for _ in self.sliding]
        self.fc = shaken(linear(len(self.taps) * hidden, hidden), source)
        self.norm, self.hidden_norm = shaken(sizes.norm(), source), shaken(sizes.norm(), source)
        lent = self.model.get_input_embeddings().weight
        self.embedding = random_table(source, *lent.shape) if self.own else lent
        head = self.model.lm_head.weight
        self.head = random_table(source, self.words.count, hidden) if self.own else head[list(self.words.drafted)]

    def tensors(self, fc: str = "fc.", hidden_norm: str = "hidden_norm.") -> dict[str, Tensor]:
        found = named(fc, self.fc) | named(hidden_norm, self.hidden_norm) | named("norm.", self.norm) | self.words.maps
        for i, layer in enumerate(self.stack):
            found |= named(f"layers.{i}.", layer)
        return found | ({"embed_tokens.weight": self.embedding, "lm_head.weight": self.head} if self.own else {})

    def block(self, features: Tensor, anchor: int) -> Tensor:
        """What the slots put out, [slots, H]: they read the context's rows and each other's, layer by layer."""
        context = self.hidden_norm(self.fc(features))
        x, count = self.sizes.written(self.embedding)[[anchor] + [self.mask] * (self.slots - 1)], len(context)
        rows, keys = torch.arange(count, count + self.slots)[:, None], torch.arange(count + self.slots)
        for layer, slides in zip(self.stack, self.sliding, strict=True):
            seen = torch.ones(count + self.slots, count + self.slots, dtype=torch.bool)
            seen[count:] = self.near(rows, keys) if slides else True
            both = torch.cat((context, layer.input_layernorm(x)))
            x = rest(layer, x, attended(layer, both, self.sizes, seen)[count:])
        out: Tensor = self.norm(x)
        return out

    def logits(self, x: Tensor) -> Tensor:
        """Over the draft vocabulary."""
        return capped(x @ self.head.T, self.cap)

    def peer(self, config: dict[str, Any], shifted: bool, length: int, tensors: dict[str, Tensor]) -> Peer:
        """A DFlash: the anchor's slot is used or not."""

        def chain(features: Tensor, prefix: Sequence[int], drafted: Sequence[int]) -> Tensor:
            return self.words.spread(self.logits(self.block(features, prefix[-1])[0 if shifted else 1 :]))

        return Peer(config | {"dtype": "float64"}, tensors, self.taps, chain, lambda *_: length)


def windows(source: Random, sliding: list[bool], near: int) -> dict[str, Any]:
    """Which layers slide, by their types or, as Qwen's configs had it before there were types, from one on."""
    said: dict[str, Any] = {"sliding_window": near, "use_sliding_window": True} if any(sliding) else {}
    if sliding == sorted(sliding) and source.random() < 0.5:
        return said | {"max_window_layers": sliding.count(False)}
    return said | {"layer_types": ["sliding_attention" if slides else "full_attention" for slides in sliding]}


def common(source: Random, model: Any, family: str = "qwen3") -> tuple[Sizes, dict[str, Any], dict[str, Any]]:
    """Sizes, the config of them, and what every backbone has."""
    layers = source.choice((1, 2, 3))
    sizes = Sizes(source, model.config.hidden_size, family, layers=layers, head_bias=source.random() < 0.5)
    parts = {
        "taps": tuple(source.sample(range(model.config.num_hidden_layers), source.choice((1, 2, 4)))),
        "slots": source.randrange(2, 8), "mask": source.randrange(model.config.vocab_size),
    }  # fmt: skip
    fields = {**sizes.fields, **sizes.said_rope(), **sizes.bias_said()}
    return sizes, fields, parts


def zlab(source: Random, model: Any) -> Peer:
    """A sliding layer's row sees the W - 1 before it, and as many behind it where the config says so."""
    (sizes, fields, parts), width = common(source, model), source.choice((2, 3, 5))
    sliding, one_way = [source.random() < 0.7 for _ in range(sizes.layers)], source.random() < 0.5
    inner = {"target_layer_ids": [tap - 1 for tap in parts["taps"]], "mask_token_id": parts["mask"]}
    config = fields | windows(source, sliding, width) | {"architectures": ["DFlashDraftModel"], "model_type": "qwen3"}
    config |= {"num_target_layers": model.config.num_hidden_layers, "vocab_size": model.config.vocab_size}
    config |= {"dflash_config": inner} | ({} if one_way else {"is_causal": False})
    source.choice((config, inner))["block_size"] = parts["slots"]

    def near(rows: Tensor, keys: Tensor) -> Tensor:
        return (rows - keys < width) & (keys - rows < (1 if one_way else width))

    words = Words(model.config.vocab_size, range(model.config.vocab_size))
    network = Backbone(sizes, model, words, **parts, sliding=sliding, near=near, own=False)
    network.embedding = written(model)
    if source.random() < 0.5:  # a factor, on raw embeddings
        factor = source.choice((config, inner))["input_embedding_scale"] = 0.3 + source.random()
        network.embedding = model.get_input_embeddings().weight * factor
    if source.random() < 0.5:
        factor = source.choice((config, inner))["output_multiplier"] = 0.3 + source.random()
        network.head = network.head * factor
    return network.peer(config, False, parts["slots"] - 1, network.tensors())


def written(model: Any) -> Tensor:
    """What the target's embedding module writes for each token, a factor of Gemma's included."""
    table: Tensor = model.get_input_embeddings()(torch.arange(model.config.vocab_size))
    return table


def transformers(source: Random, model: Any) -> Peer:
    """A sliding layer's row sees what is at most W away, either way. Where no types are said, all layers slide."""
    (sizes, fields, parts), width = common(source, model), source.choice((1, 2, 4))
    sliding = [source.random() < 0.5 for _ in range(sizes.layers)]
    types = {"layer_types": ["sliding_attention" if slides else "full_attention" for slides in sliding]}
    config = fields | {"architectures": ["MuseGlimmerAssistantModel"], "sliding_window": width}
    config |= {"target_layer_ids": [tap - 1 for tap in parts["taps"]], "mask_token_id": parts["mask"]}
    config |= {"block_size": parts["slots"]} | ({} if all(sliding) else types)
    words = Words(model.config.vocab_size, range(model.config.vocab_size))
    network = Backbone(
        sizes, model, words, **parts, sliding=sliding, near=lambda rows, keys: (rows - keys).abs() <= width, own=False
    )
    network.embedding = written(model)
    return network.peer(config, False, parts["slots"] - 1, network.tensors("encoder.fc.", "encoder.output_norm_enc."))


def speculators(source: Random, model: Any, kind: str = "dflash", head: str = "") -> Peer:
    """DFlash, or DSpark: a sliding layer's rows see W rows before the anchor, and the block or what precedes them. With
    a head of a kind nothing is drafted from the anchor's slot."""
    (sizes, fields, parts), width = common(source, model), source.choice((2, 3, 5))
    sliding, one_way = [source.random() < 0.7 for _ in range(sizes.layers)], source.random() < 0.5
    shifted, words, slots = source.random() < 0.5 and not head, Words.of(source, model), parts["slots"]
    inner = fields | windows(source, sliding, width) | {"model_type": "qwen3", "vocab_size": model.config.vocab_size}
    config: dict[str, Any] = {"speculators_model_type": kind, "transformer_layer_config": inner}
    config |= {"architectures": ["x"], "draft_vocab_size": words.count, "block_size": slots}
    config |= {"mask_token_id": parts["mask"], "aux_hidden_state_layer_ids": list(parts["taps"])}
    config |= maybe(source, sliding_window_non_causal=False) if one_way else {"sliding_window_non_causal": True}
    usual = shifted is (kind == "dspark")
    config |= maybe(source, sample_from_anchor=shifted) if usual else {"sample_from_anchor": shifted}
    length = most = slots if shifted else slots - 1
    if source.random() < 0.7:
        length = source.randrange(1, most + 1)
        config["speculators_config"] = {"proposal_methods": [{"speculative_tokens": length}]}

    def near(rows: Tensor, keys: Tensor) -> Tensor:
        return (keys >= rows[0] - width) & (keys <= (rows if one_way else rows[-1]))

    network = Backbone(sizes, model, words, **parts, sliding=sliding, near=near, own=source.random() < 0.5)
    if kind == "dflash":
        return network.peer(config, shifted, length, network.tensors())
    return Heads(network, shifted, length, head).peer(config)


def deepspec(source: Random, model: Any, family: str = "qwen3") -> Peer:
    """DSpark of DeepSpec; family: of the target, qwen3 or gemma4."""
    sizes, fields, parts = common(source, model, family)
    cap = 0.8 if family == "gemma4" and source.random() < 0.5 else None
    config = fields | {"architectures": ["Gemma4DSparkModel" if family == "gemma4" else "Qwen3DSparkModel"]}
    config |= {"vocab_size": model.config.vocab_size, "num_target_layers": model.config.num_hidden_layers}
    config |= {"target_layer_ids": [tap - 1 for tap in parts["taps"]], "mask_token_id": parts["mask"]}
    config |= {"block_size": parts["slots"]} | ({"final_logit_softcapping": cap} if cap else {})
    words = Words(model.config.vocab_size, range(model.config.vocab_size))
    full = [False] * sizes.layers
    network = Backbone(sizes, model, words, **parts, sliding=full, near=lambda rows, keys: keys < 0, own=True, cap=cap)
    return Heads(network, True, parts["slots"]).peer(config)


class Heads:
    """DSpark's heads on what the slots put out, of random kinds."""

    def __init__(self, network: Backbone, shifted: bool, most: int, head: str = "") -> None:
        self.network, self.shifted, self.most = network, shifted, most
        source, hidden = network.sizes.source, network.sizes.hidden
        self.rank = rank = source.choice((3, 5) if head else (0, 3, 5))
        self.kind = head or (source.choice(("vanilla", "gated", "rnn")) if rank else "")
        self.confident = source.random() < 0.7
        self.with_markov = self.confident and rank > 0 and source.random() < 0.5
        self.first = shaken(Embedding(len(network.embedding), max(rank, 1)), source)
        self.second = shaken(linear(max(rank, 1), network.words.count), source)
        wide = (2 * rank + hidden, 3 * rank) if self.kind == "rnn" else (hidden + rank, max(rank, 1))
        self.joint = shaken(linear(*wide, bias=True), source)
        self.confidence = shaken(linear(hidden + (rank if self.with_markov else 0), 1, True), source)

    def peer(self, config: dict[str, Any]) -> Peer:
        config |= {"markov_rank": self.rank, "enable_confidence_head": self.confident, "dtype": "float64"}
        config |= {"markov_head_type": self.kind} if self.rank else {}
        config |= {"confidence_head_with_markov": self.with_markov} if self.confident else {}
        tensors = self.network.tensors() | (named("confidence_head.proj.", self.confidence) if self.confident else {})
        if self.rank:
            tensors |= named("markov_head.markov_w1.", self.first) | named("markov_head.markov_w2.", self.second)
        if self.kind in ("gated", "rnn"):
            tensors |= named(f"markov_head.{'gate' if self.kind == 'gated' else 'joint'}_proj.", self.joint)
        return Peer(config, tensors, self.network.taps, lambda *of: self.rows(*of)[0], self.length)

    def rows(self, features: Tensor, prefix: Sequence[int], drafted: Sequence[int]) -> tuple[Tensor, list[float]]:
        """Logits and confidences of the slots, each after the tokens before it."""
        memory, rows, odds = torch.zeros(self.rank, dtype=torch.float64), list[Tensor](), list[float]()
        skipped = 0 if self.shifted else 1  # a recurrent head has seen the anchor's slot
        before = [prefix[-1]] * skipped + [prefix[-1], *drafted]
        slots = self.network.block(features, prefix[-1])[: self.most + skipped]
        for slot, token in zip(slots, before, strict=False):
            latent = self.first(torch.tensor(token))
            odds.append(float(self.confidence(torch.cat((slot, latent)) if self.with_markov else slot).sigmoid()))
            if self.kind == "gated":
                latent = self.joint(torch.cat((slot, latent))).sigmoid() * latent
            elif self.kind == "rnn":
                gate, candidate, out = self.joint(torch.cat((memory, latent, slot))).chunk(3)
                memory, latent = gate.sigmoid() * memory + (-gate).sigmoid() * candidate.tanh(), out.tanh()
            rows.append(self.network.logits(slot) + (self.second(latent) if self.rank else 0.0))
        return self.network.words.spread(torch.stack(rows[skipped:])), odds[skipped:]

    def length(self, *of: Any) -> int:
        """The block ends before the first confidence that is below the threshold."""
        odds = self.rows(*of)[1]
        return next((place for place, one in enumerate(odds) if self.confident and one < THRESHOLD), self.most)
