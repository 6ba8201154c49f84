"""A small world to train drafters in: languages, a target of each seed, drafters' roll-outs, and what they measure.

Every seed has a language of its own, a target that has learned it, and texts that the target wrote. All seeds are
trained at once: parameters have the seed as their first axis, and `torch.vmap` runs the decoder's own networks
(`refengine.decoder.networks`, `.drafters`) over seeds and sentences. A sum over seeds is what is minimised, Adam goes
element by element, and so no seed knows of another.

    language   three domains with six words each; the next word follows from the last two. The third is formulaic: one
               word has nearly all the mass, and texts soon repeat themselves
    target     a Llama of three layers, trained on sentences of all domains
    texts      drawn from the target's own rows at temperature 1: drafters learn from some, and are measured on others
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from benchmarks.fused_taps import descend
from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.feature_recurrence import self_attention
from refengine.decoder.networks.layers import Heads, Weights, after_attention
from refengine.decoder.networks.rope import Rope

SEEDS = 8
WORDS, PLAIN, FORMULAIC = 6, (0, 1), 2
DOMAINS = (*PLAIN, FORMULAIC)
VOCABULARY = WORDS * len(DOMAINS)
HIDDEN, INNER, LAYERS, WIDTH, EPS = 24, 48, 3, 12, 1e-6
LENGTH, BEGINNING = 20, 4  # words of a text, and how many of them say little about its language
TARGET_STEPS, SENTENCES, BATCH = 400, 32, 8
CORPUS, MEASURED = 256, 64  # texts that drafters learn from, and others that they are measured on

Tensors = dict[str, Tensor]  # [seeds, *] each


def seeded(shape: Mapping[str, tuple[int, ...]], salt: str = "") -> Tensors:
    """Random parameters, each from a seed of its name; norms near 1."""
    found = {}
    for name, size in shape.items():
        generator = torch.Generator().manual_seed(_number(salt, name))
        scale = 0.2 if name.endswith("norm.weight") else 0.0 if name.endswith("bias") else size[-1] ** -0.5
        found[name] = torch.randn(SEEDS, *size, generator=generator) * scale + float(name.endswith("norm.weight"))
    return found


def _number(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:6])


# --- languages -------------------------------------------------------------------------------------------------------


@cache
def languages() -> Tensor:
    """Probabilities [seeds, domains, 6, 6, 6] of a word after the last two."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(SEEDS, len(DOMAINS), WORDS, WORDS, WORDS, generator=generator) ** 4 + 0.01
    formula = weights[:, FORMULAIC]
    weights[:, FORMULAIC] = torch.where(formula == formula.amax(-1, keepdim=True), 1.0, 0.01)
    return weights / weights.sum(-1, keepdim=True)


def speak(count: int, seed: int, domains: Sequence[int] = DOMAINS, length: int = LENGTH) -> Tensor:
    """Sentences [seeds, count, length]; each is of one domain and has the words of it."""
    generator, each = torch.Generator().manual_seed(seed), torch.arange(SEEDS)[:, None]
    domain = torch.tensor(domains)[torch.randint(len(domains), (SEEDS, count), generator=generator)]
    words = [torch.randint(WORDS, (SEEDS, count), generator=generator) for _ in range(2)]
    while len(words) < length:
        after = languages()[each, domain, words[-2], words[-1]].flatten(0, 1)
        words.append(torch.multinomial(after, 1, generator=generator).view(SEEDS, count))
    return torch.stack(words, -1) + WORDS * domain[..., None]


# --- the target ------------------------------------------------------------------------------------------------------


class Llama:
    """A causal language model on the decoder's own layers. Tensors of one seed."""

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
        self.w, self.heads = Weights(tensors, prefix), Heads(2, WIDTH, Rope(10000.0), EPS)

    def __call__(self, tokens: Tensor, past: Cache | None = None, sees: Tensor | None = None) -> "Read":
        """Of rows that see all before them; or of rows that see of the `past` ones and themselves what `sees` says."""
        positions = torch.arange(len(tokens)) if sees is None else sees.sum(-1) - 1
        sees = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril() if sees is None else sees
        states, cache = [self.w.embed("embed_tokens", tokens)], []
        for i in range(LAYERS):
            layer, hidden = self.w.at("layers", i), states[-1]
            normed = layer.norm("input_layernorm", hidden, EPS)
            before = past[i] if past else self.heads.empty(hidden)
            attended, both = self_attention(layer.at("self_attn"), self.heads, normed, positions, before, sees)
            states.append(after_attention(layer, hidden, attended, EPS))
            cache.append(both)
        states[-1] = self.w.norm("norm", states[-1], EPS)
        return Read(torch.stack(states), self.w.linear("lm_head", states[-1]), tuple(cache))


@dataclass(frozen=True)
class Read:
    """What the target says of rows: hidden states [layers + 1, n, H], the last one normed; logits [n, V]; its cache."""

    states: Tensor
    logits: Tensor
    cache: Cache


def layer_shape(name: str, joined: int = HIDDEN) -> dict[str, tuple[int, ...]]:
    """A layer's tensors; `joined` is how wide its attention's input is."""
    inner = {"gate_proj": (INNER, HIDDEN), "up_proj": (INNER, HIDDEN), "down_proj": (HIDDEN, INNER)}
    attention = {f"{x}_proj": (2 * WIDTH, joined) for x in "qkv"} | {"o_proj": (HIDDEN, 2 * WIDTH)}
    return (
        {f"{name}.mlp.{x}.weight": size for x, size in inner.items()}
        | {f"{name}.self_attn.{x}.weight": size for x, size in attention.items()}
        | {f"{name}.{x}_layernorm.weight": (HIDDEN,) for x in ("input", "post_attention")}
    )


def target_shape() -> dict[str, tuple[int, ...]]:
    layers = [layer_shape(f"layers.{i}") for i in range(LAYERS)]
    ends = {
        "embed_tokens.weight": (VOCABULARY, HIDDEN),
        "lm_head.weight": (VOCABULARY, HIDDEN),
        "norm.weight": (HIDDEN,),
    }
    return ends | {name: size for layer in layers for name, size in layer.items()}


def next_word(tensors: Tensors, words: Tensor) -> Tensor:
    """The mean cross-entropy [seeds] of a target with the words of texts."""

    def one(weights: Tensors, words: Tensor) -> Tensor:
        logits = torch.vmap(lambda text: Llama(weights)(text).logits)(words)
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())

    return torch.vmap(one)(tensors, words)


@dataclass
class World:
    """A target of each seed, and the texts that it wrote."""

    target: Tensors
    kept: dict[Any, Tensor] = field(default_factory=dict)

    def write(self, count: int, seed: int, domains: Sequence[int] = PLAIN, length: int = LENGTH) -> Tensor:
        """Texts [seeds, count, length] of the target, each begun with two words of a domain."""
        key = (count, seed, tuple(domains), length)
        if key not in self.kept:
            generator, words = torch.Generator().manual_seed(seed), speak(count, seed, domains, 2)
            while words.shape[-1] < length:
                p = self.read(words).logits[..., -1, :].softmax(-1)
                drawn = torch.multinomial(p.flatten(0, 1), 1, generator=generator)
                words = torch.cat((words, drawn.view(SEEDS, count, 1)), -1)
            self.kept[key] = words
        return self.kept[key]

    def corpus(self, step: int, domains: Sequence[int] = PLAIN, batch: int = BATCH) -> Tensor:
        """The step's batch of texts to learn from."""
        texts = self.write(CORPUS, 7, domains)
        return texts[:, torch.randint(CORPUS, (batch,), generator=torch.Generator().manual_seed(step))]

    def measured(self, domains: Sequence[int] = PLAIN) -> Tensor:
        return self.write(MEASURED, 8, domains)

    @torch.no_grad()
    def read(self, words: Tensor) -> Read:
        """The target's pass over texts [seeds, n, length]: every field with two axes in front."""

        def one(weights: Tensors, words: Tensor) -> tuple[Tensor, Tensor, Cache]:
            def text(words: Tensor) -> tuple[Tensor, Tensor, Cache]:
                read = Llama(weights)(words)
                return read.states, read.logits, read.cache

            return torch.vmap(text)(words)

        return Read(*torch.vmap(one)(self.target, words))


@cache
def world() -> World:
    """Targets that have learned their languages."""
    tensors = seeded(target_shape(), "target")
    learn(tensors, TARGET_STEPS, lambda step: next_word(tensors, speak(SENTENCES, 100_000 + step)))
    return World(tensors)


def learn(tensors: Tensors, steps: int, loss: Callable[[int], Tensor], free: Callable[[str], bool] = bool) -> None:
    """Descend on the free tensors, in place; `loss` has one value a seed."""
    trained = [x.requires_grad_() for name, x in tensors.items() if free(name)]
    if steps:
        descend(trained, steps, lambda step: loss(step).sum())
    for x in trained:
        x.requires_grad_(False)
