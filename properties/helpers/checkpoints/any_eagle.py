"""The EAGLE family at random sizes, layout by layout: see `any_shape.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor

from properties.helpers.checkpoints.any_shape import (
    Peer,
    Sizes,
    Words,
    attended,
    capped,
    causal,
    linear,
    maybe,
    named,
    random_table,
    rest,
    shaken,
)

DRAFTED = 5  # tokens a round


def recurrence(fused: Any, rows: Any, logits: Any) -> Callable[..., Tensor]:
    """The chain of an EAGLE: what a row puts out is what the next row reads beside its token."""

    def chain(features: Tensor, prefix: Sequence[int], drafted: Sequence[int]) -> Tensor:
        tokens, hidden, found = list(prefix[1:]), fused(features), list[Tensor]()
        for token in (*drafted, -1):
            out = rows(torch.tensor(tokens), hidden, len(prefix) - 2)[-1:]
            found.append(logits(out)[0])
            tokens, hidden = [*tokens, token], torch.cat((hidden, out))
        return torch.stack(found)

    return chain


def eagle1(source: Random, model: Any) -> Peer:
    """EAGLE-1 of SafeAILab."""
    bias, qkv_bias, layers = source.random() < 0.5, source.random() < 0.5, source.choice((1, 2, 3))
    sizes = Sizes(source, model.config.hidden_size, even=True, layers=layers, scaled=False)
    fields = {**sizes.fields, **safeailab_angles(sizes), **(maybe(source, bias=True) if bias else {"bias": False})}
    fields |= {"qkv_bias": True} if qkv_bias else maybe(source, qkv_bias=False)
    fields |= sizes.groups_said()
    hidden, stack = sizes.hidden, [sizes.layer(sizes.hidden, qkv_bias) for _ in range(layers)]
    stack[0].input_layernorm = torch.nn.Identity()
    fc = shaken(linear(2 * hidden, hidden, bias), source)
    tensors, embedding = named("fc.", fc), model.get_input_embeddings().weight
    for i, layer in enumerate(stack):
        tensors |= named(f"layers.{i}.", shaken(layer, source))
    if source.random() < 0.5:
        embedding = tensors["embed_tokens.weight"] = random_table(source, *embedding.shape)

    def rows(tokens: Tensor, features: Tensor, anchor: int) -> Tensor:
        x: Tensor = fc(torch.cat((embedding[tokens], features), -1))
        for layer in stack:
            x = rest(layer, x, attended(layer, layer.input_layernorm(x), sizes, causal(len(x))))
        return x

    config = {"architectures": ["LlamaForCausalLM"], **fields, "vocab_size": len(embedding), "dtype": "float64"}
    chain = recurrence(lambda x: x, rows, lambda x: x @ model.lm_head.weight.T)
    return Peer(config, tensors, (model.config.num_hidden_layers,), chain, lambda *_: DRAFTED)


def safeailab_angles(sizes: Sizes) -> dict[str, Any]:
    """What SafeAILab's code turns with: 10000 where no base is said, and wherever it scales."""
    source, base = sizes.source, sizes.rope["rope_theta"]
    if source.random() < 0.3:
        sizes.config.rope_parameters = {"rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}
        return {"rope_theta": 77.0, "rope_scaling": {"type": "linear", "factor": 3.0}}
    said = maybe(source, rope_theta=1e4) if source.random() < 0.5 else {"rope_theta": base}
    sizes.config.rope_parameters = {"rope_type": "default", "rope_theta": said.get("rope_theta") or 1e4}
    return said


# --- EAGLE-3 ---------------------------------------------------------------------------------------------------------


@dataclass
class Eagle3:
    """The network of every EAGLE-3, by the switches of its releases."""

    sizes: Sizes
    model: Any
    words: Words
    taps: tuple[int, ...] = (2, 3, 4)  # of a target of 7 layers, where a config says none
    first: str = "layers.0."
    own: bool = True  # embeddings in the file
    joined: int = 1
    before_fc: bool = False
    fc_norm: bool = False
    residual: bool = False
    norm_output: bool = False
    head_norm: bool = True
    cap: float | None = None
    window: int | None = None
    by_row: bool = False
    sliding: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        sizes, source, hidden = self.sizes, self.sizes.source, self.sizes.hidden
        self.theirs = self.model.config.hidden_size
        features = len(self.taps) * self.theirs
        widths = [2 * hidden if i < self.joined else None for i in range(sizes.layers)]
        self.stack = [shaken(sizes.layer(width), source) for width in widths]
        self.hidden_norms = [shaken(sizes.norm(), source) for _ in range(self.joined)]
        self.fc, self.head = shaken(linear(features, hidden), source), shaken(linear(hidden, self.words.count), source)
        self.norm, self.input_norm = shaken(sizes.norm(), source), shaken(sizes.norm(features), source)
        self.fc_norms = [shaken(sizes.norm(self.theirs), source) for _ in self.taps]
        lent = self.model.get_input_embeddings().weight
        self.embedding = random_table(source, len(lent), hidden) if self.own else lent

    def tensors(self) -> dict[str, Tensor]:
        found = named("fc.", self.fc) | named("norm.", self.norm) | named("lm_head.", self.head) | self.words.maps
        found |= {"embed_tokens.weight": self.embedding} if self.own else {}
        found |= named("input_norm.", self.input_norm) if self.before_fc else {}
        for j, one in enumerate(self.fc_norms if self.fc_norm else ()):
            found |= named(f"fc_norm.{j}.", one)
        for i, layer in enumerate(self.stack):
            found |= named(f"layers.{i}." if i else self.first, layer)
        for i, norm in enumerate(self.hidden_norms):
            found |= named(f"layers.{i}.hidden_norm." if i else f"{self.first}hidden_norm.", norm)
        return found

    def fused(self, features: Tensor) -> Tensor:
        if self.before_fc:
            features = self.input_norm(features)
        if self.fc_norm:
            parts = zip(self.fc_norms, features.split(self.theirs, -1), strict=True)
            features = torch.cat([norm(x) for norm, x in parts], -1)
        out: Tensor = self.fc(features)
        return out

    def sees(self, count: int, anchor: int) -> Tensor:
        """In a sliding layer. The rows of the round are those from `anchor` on, and none of them is hidden."""
        seen = causal(count)
        for row in range(count if self.window is not None else 0):
            first = row if row < anchor or self.by_row else anchor
            seen[row, : max(0, min(first - (self.window or 0) + 1, anchor))] = False
        return seen

    def rows(self, tokens: Tensor, x: Tensor, anchor: int) -> Tensor:
        embedded = self.sizes.written(self.embedding)[tokens]
        for i, layer in enumerate(self.stack):
            normed = layer.input_layernorm(embedded if i < self.joined else x)
            if i < self.joined:
                feature = self.hidden_norms[i](x)
                normed, x = torch.cat((normed, feature), -1), feature if self.residual else x
            seen = self.sees(len(x), anchor) if self.sliding and self.sliding[i] else causal(len(x))
            x = rest(layer, x, attended(layer, normed, self.sizes, seen))
        return self.norm(x) if self.norm_output else x

    def logits(self, x: Tensor) -> Tensor:
        normed = self.norm(x) if self.head_norm and not self.norm_output else x
        return self.words.spread(capped(self.head(normed), self.cap))

    def peer(self, config: dict[str, Any], chain: Any = None, **tensors: Tensor) -> Peer:
        fields = {"draft_vocab_size": self.words.count, **config, "dtype": "float64"}
        chain = chain or recurrence(self.fused, self.rows, self.logits)
        return Peer(fields, self.tensors() | tensors, self.taps, chain, lambda *_: DRAFTED)

    def slots(self, config: dict[str, Any], mask: int, shape: tuple[int, ...]) -> Peer:
        """P-EAGLE: the whole chain in one pass, of mask slots."""
        feature = random_table(self.sizes.source, 1, len(self.taps) * self.theirs)

        def chain(features: Tensor, prefix: Sequence[int], drafted: Sequence[int]) -> Tensor:
            tokens = torch.tensor([*prefix[1:], *(mask for _ in drafted)])
            hidden = torch.cat((self.fused(features), self.fused(feature).expand(len(drafted), -1)))
            return self.logits(self.rows(tokens, hidden, len(prefix) - 2)[len(prefix) - 2 :])

        return self.peer(config, chain, mask_hidden=feature.reshape(shape))


def safeailab(source: Random, model: Any) -> Peer:
    own, theirs = source.random() < 0.5, model.config.hidden_size
    sizes = Sizes(source, source.choice((12, 24)) if own else theirs, even=True, scaled=False)
    fields = {**sizes.fields, **safeailab_angles(sizes), **sizes.groups_said(), "vocab_size": model.config.vocab_size}
    fields |= {"target_hidden_size": theirs} if sizes.hidden != theirs else {}
    network = Eagle3(sizes, model, Words.of(source, model), first="midlayer.", own=own)
    return network.peer(fields | {"architectures": ["LlamaForCausalLM"]})


def specforge(source: Random, model: Any) -> Peer:
    own, theirs = source.random() < 0.5, model.config.hidden_size
    sizes = Sizes(source, source.choice((12, 24)) if own else theirs)
    fc_norm, head_norm, taps = source.random() < 0.5, source.random() < 0.5, (2, 3, 4)
    fields = {**sizes.fields, **sizes.said_rope(), **sizes.groups_said(), "vocab_size": model.config.vocab_size}
    fields |= {"target_hidden_size": theirs} if sizes.hidden != theirs else {}
    fields |= maybe(source, norm_output=True) if head_norm else {"norm_output": False}
    fields |= {"fc_norm": True} if fc_norm else maybe(source, fc_norm=False)
    if source.random() < 0.5:
        one, two, three = taps = tuple(sorted(source.sample(range(model.config.num_hidden_layers), 3)))
        fields["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [three - 1, one - 1, two - 1]}
    network = Eagle3(
        sizes, model, Words.of(source, model), taps, "midlayer.", own, fc_norm=fc_norm, head_norm=head_norm
    )
    return network.peer(fields | {"architectures": ["LlamaForCausalLMEagle3"]})


def deepspec(source: Random, model: Any, family: str = "qwen3") -> Peer:
    """Every layer is a joined one; family: of the target, qwen3 or gemma4."""
    layers, biased = source.choice((1, 2, 3)), source.random() < 0.5
    sizes = Sizes(source, model.config.hidden_size, family, layers=layers, head_bias=biased)
    taps = tuple(source.sample(range(model.config.num_hidden_layers), source.choice((1, 2, 4))))
    cap = 0.8 if family == "gemma4" and source.random() < 0.5 else None
    fields = {**sizes.fields, **sizes.said_rope(), **sizes.bias_said(), "vocab_size": model.config.vocab_size}
    fields |= {"final_logit_softcapping": cap} if cap else {}
    fields |= {"architectures": ["Gemma4Eagle3Model" if family == "gemma4" else "Qwen3Eagle3Model"]}
    fields |= {"target_layer_ids": [tap - 1 for tap in taps], "num_target_layers": model.config.num_hidden_layers}
    words = Words(model.config.vocab_size, range(model.config.vocab_size))
    return Eagle3(sizes, model, words, taps, joined=layers, cap=cap).peer(fields | {"ttt_length": DRAFTED})


def speculators(source: Random, model: Any, kind: str = "eagle3") -> Peer:
    """EAGLE-3, or P-EAGLE ("peagle")."""
    flags = {name: source.random() < 0.5 for name in ("norm_before_fc", "fc_norm", "norm_output")}
    family, layers, residual = source.choice(("llama", "qwen3")), source.choice((1, 2, 3)), source.random() < 0.5
    bias, mlp_bias = source.random() < 0.5, family == "llama" and source.random() < 0.5
    sizes = Sizes(source, source.choice((12, 24)), family, layers=layers, head_bias=bias, mlp_bias=mlp_bias)
    inner = {**sizes.fields, **sizes.said_rope(), **sizes.bias_said(), "vocab_size": model.config.vocab_size}
    inner |= {"model_type": family} | ({"mlp_bias": True} if mlp_bias else maybe(source, mlp_bias=False))
    sliding, window = [source.random() < 0.5 for _ in range(layers)], source.choice((1, 2, 3))
    if any(sliding):
        types = ["sliding_attention" if slides else "full_attention" for slides in sliding]
        inner |= {"layer_types": types, "sliding_window": window, "use_sliding_window": True}
    config: dict[str, Any] = {"speculators_model_type": kind, "transformer_layer_config": inner}
    config |= {"speculators_config": {"proposal_methods": [{"speculative_tokens": DRAFTED}]}}
    config |= {"norm_before_residual": residual, "architectures": ["x"]}
    for name, value in flags.items():
        config |= {name: True} if value else maybe(source, **{name: False})
    theirs, taps = model.config.hidden_size, (2, 3, 4)
    config |= {"target_hidden_size": theirs} if theirs != sizes.hidden else maybe(source, target_hidden_size=theirs)
    if source.random() < 0.7:
        taps = tuple(source.sample(range(model.config.num_hidden_layers), source.choice((1, 2, 4))))
        config["eagle_aux_hidden_state_layer_ids"] = list(taps)
    network = Eagle3(
        sizes, model, Words.of(source, model), taps, residual=residual, before_fc=flags["norm_before_fc"],
        fc_norm=flags["fc_norm"], norm_output=flags["norm_output"], window=window, sliding=sliding,
        by_row=kind == "peagle",
    )  # fmt: skip
    if kind == "eagle3":
        return network.peer(config)
    mask = source.randrange(model.config.vocab_size)
    return network.slots(config | {"mask_token_id": mask}, mask, (1, 1, -1))


def amazon(source: Random, model: Any) -> Peer:
    """P-EAGLE of Amazon: SafeAILab's names, further plain layers."""
    layers, biased, residual = source.choice((1, 2, 3)), source.random() < 0.5, source.random() < 0.5
    sizes, theirs = Sizes(source, source.choice((12, 24)), layers=layers, head_bias=biased), model.config.hidden_size
    mask = source.randrange(model.config.vocab_size)
    fields = {**sizes.fields, **sizes.said_rope(), **sizes.bias_said(), **sizes.groups_said(), "ptd_token_id": mask}
    fields |= {"norm_before_residual": True} if residual else maybe(source, norm_before_residual=False)
    fields |= {"architectures": ["LlamaForCausalLMEagle3"], "vocab_size": model.config.vocab_size}
    fields |= {"target_hidden_size": theirs} if theirs != sizes.hidden else maybe(source, target_hidden_size=theirs)
    network = Eagle3(sizes, model, Words.of(source, model), first="midlayer.", residual=residual)
    return network.slots(fields, mask, (-1,))


def dart(source: Random, model: Any) -> Peer:
    """A row for each level: behind the text stand rows of one learned vector, whose halves are pair and feature."""
    sizes = Sizes(source, model.config.hidden_size, scaled=False)
    fields = {**sizes.fields, **sizes.said_rope(), **sizes.groups_said(), "vocab_size": model.config.vocab_size}
    network = Eagle3(sizes, model, Words.of(source, model), first="midlayer.", own=False)
    blank, (layer,) = random_table(source, 1, 2 * sizes.hidden)[0], network.stack

    def chain(features: Tensor, prefix: Sequence[int], drafted: Sequence[int]) -> Tensor:
        x, tokens = network.fused(features), torch.tensor(prefix[1:])
        pairs = torch.cat((layer.input_layernorm(network.embedding[tokens]), network.hidden_norms[0](x)), -1)
        pairs = torch.cat((pairs, blank.expand(DRAFTED - 1, -1)))
        x = torch.cat((x, blank[: sizes.hidden].expand(DRAFTED - 1, -1)))
        x = rest(layer, x, attended(layer, pairs, sizes, causal(len(x))))[-DRAFTED:]
        return network.words.spread(network.head(network.norm(network.norm(x))))

    peer = network.peer(fields | {"architectures": ["x"], "draft_length": DRAFTED - 1}, chain)
    peer.tensors["midlayer.mask_rep"] = blank
    return peer
