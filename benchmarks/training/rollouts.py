"""Drafters that are recurrences over features: trained on the decoder's own networks, and run as when they draft.

Row i of depth 0 joins the token at i + 1 with the target's feature at i; what it puts out is about the token at i + 2.
Depth s takes the output of depth s - 1 at the same place, with the token one further on, and sees the rows of depth 0
up to its place and its own ones above it: what `feature_recurrence.Draft` runs, for every place of a text at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.training.world import (
    BEGINNING,
    EPS,
    HIDDEN,
    INNER,
    LAYERS,
    LENGTH,
    VOCABULARY,
    WIDTH,
    Llama,
    Read,
    Tensors,
    World,
    layer_shape,
    learn,
    seeded,
)  # fmt: skip
from refengine.decoder.checkpoints.layouts import eagle3
from refengine.decoder.drafters.eagle1 import Shape as Eagle1Shape
from refengine.decoder.drafters.eagle3 import Shape as Eagle3Shape
from refengine.decoder.drafters.qwen_mtp import Shape as MTPShape
from refengine.decoder.networks.feature_recurrence import Network
from refengine.decoder.networks.rope import Rope

DEPTHS, STEPS = 3, 400
SHARED = ("embed_tokens.weight", "lm_head.weight")  # the target's, frozen
EAGLE1 = Eagle1Shape(
    vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=2, rms_norm_eps=EPS, rope=Rope(10000.0), bias=True, qkv_bias=False, num_target_layers=LAYERS,
)  # fmt: skip
EAGLE3 = Eagle3Shape(
    vocab_size=VOCABULARY, draft_vocab_size=VOCABULARY, hidden_size=HIDDEN, target_hidden_size=HIDDEN,
    intermediate_size=INNER, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=WIDTH,
    rms_norm_eps=EPS, rope=Rope(10000.0), first="layers.0", taps=(1, 2, 3),
)  # fmt: skip
MTP = MTPShape(
    vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=2, num_key_value_heads=2,
    head_dim=WIDTH, rotary=WIDTH, rope_theta=10000.0, rms_norm_eps=EPS, attention_bias=False, mlp=INNER,
)  # fmt: skip

Values = dict[str, dict[str, list[float]]]  # variant -> measure -> one value a seed
Follow = Callable[[Tensors, Read, Tensor], Any]


# --- networks --------------------------------------------------------------------------------------------------------


def start_eagle1(world: World, salt: str = "eagle1") -> Tensors:
    shape = layer_shape("layers.0") | {"fc.weight": (HIDDEN, 2 * HIDDEN), "fc.bias": (HIDDEN,)}
    shape.pop("layers.0.input_layernorm.weight")
    return seeded(shape, salt) | shared(world)


def start_eagle3(world: World, salt: str = "eagle3") -> Tensors:
    return seeded(eagle3.table(EAGLE3, set(SHARED)), salt) | shared(world)


def start_mtp(world: World, salt: str = "mtp") -> Tensors:
    shape = layer_shape("layers.0") | {"fc.weight": (HIDDEN, 2 * HIDDEN), "norm.weight": (HIDDEN,)}
    shape |= {f"pre_fc_norm_{x}.weight": (HIDDEN,) for x in ("embedding", "hidden")}
    shape |= {f"layers.0.self_attn.{x}_norm.weight": (WIDTH,) for x in "qk"}
    shape["layers.0.self_attn.q_proj.weight"] = (4 * WIDTH, HIDDEN)  # a query and a gate for each of two heads
    found = seeded(shape, salt)
    return {name: x - float(name.endswith("norm.weight")) for name, x in found.items()} | shared(
        world
    )  # norms are about 0


def shared(world: World) -> Tensors:
    return {name: world.target[name].clone() for name in SHARED}


def free(name: str) -> bool:
    return name not in SHARED


def train(
    tensors: Tensors, world: World, loss: Callable[[Tensors, Read, Tensor], Tensor],
    texts: Callable[[int], Tensor] | None = None, steps: int = STEPS,
) -> Tensors:  # fmt: skip
    """Descend in place on `loss` of (one seed's tensors, the target's pass over one text, the text), which the target
    wrote unless `texts` says otherwise."""

    def at(step: int) -> Tensor:
        words = (texts or world.corpus)(step)
        return over_texts(loss, tensors, world, words).mean(-1)

    learn(tensors, steps, at, free)
    return tensors


def over_texts(follow: Follow, tensors: Tensors, world: World, words: Tensor) -> Any:
    """`follow` of every text of every seed: two axes in front. Its tensors have the target's too, as `target.*`."""

    def one(weights: Tensors, states: Tensor, logits: Tensor, cache: Any, words: Tensor) -> Any:
        def text(states: Tensor, logits: Tensor, cache: Any, words: Tensor) -> Any:
            return follow(weights, Read(states, logits, cache), words)

        return torch.vmap(text)(states, logits, cache, words)

    read, target = world.read(words), {f"target.{name}": x for name, x in world.target.items()}
    return torch.vmap(one)(tensors | target, read.states, read.logits, read.cache, words)


# --- roll-outs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """What a recurrence is given; as released by default.

    shift     of tokens against features; None: no token, 0 at every place
    features  False: no feature, zeros at every place
    related   False: drafts see the rows of the text, and neither each other nor themselves
    """

    shift: int | None = 1
    features: bool = True
    related: bool = True


@dataclass(frozen=True)
class Step:
    """One depth: what the network put out [m, H], its logits [m, V], and the target's [m, V]."""

    hidden: Tensor
    logits: Tensor
    p: Tensor


def rollout(
    net: Network, read: Read, words: Tensor, inputs: Inputs = Inputs(), depths: int = DEPTHS,
    own: "Branches | None" = None,
) -> list[Step]:  # fmt: skip
    """Every depth at every place of one text, on the text's tokens, or from the second depth on on the draft's own."""
    count = len(words) - DEPTHS - 1
    features = net.fused(torch.cat([read.states[j] for j in net.taps], -1))
    hidden, cache, found = features[:count], net.empty(), list[Step]()
    text, itself = torch.ones(count, count, dtype=torch.bool).tril(), torch.eye(count, dtype=torch.bool)
    for depth in range(depths):
        first = (1 if inputs.shift is None else inputs.shift) + depth
        tokens, p = words[first : first + count], read.logits[1 + depth :][:count]
        if own is not None and depth:
            tokens, p = own.follow(found[-1].logits)
        tokens = tokens * 0 if inputs.shift is None else tokens
        hidden = hidden if inputs.features else hidden * 0
        sees = torch.cat((text, *[itself & inputs.related] * depth), -1)
        hidden, cache = net.rows(tokens, hidden, torch.arange(count) + depth, cache, sees, count)
        found.append(Step(hidden, net.logits(hidden), p))
    return found


class Branches:
    """Tokens drawn from the draft's own rows, a branch at every place of a text, and the target's rows after them.

    noise  [depths, m, V], Gumbel's: the likeliest of logits + noise is a draw
    """

    def __init__(self, weights: Tensors, read: Read, noise: Tensor) -> None:
        self.target, self.cache, self.noise = Llama(weights, "target."), read.cache, noise
        self.depth, rows, count = 0, len(read.logits), noise.shape[1]
        self.text, self.itself = torch.ones(count, rows, dtype=torch.bool).tril(1), torch.eye(count, dtype=torch.bool)

    def follow(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        tokens = (logits.detach() + self.noise[self.depth]).argmax(-1)
        self.depth += 1
        read = self.target(tokens, self.cache, torch.cat((self.text, *[self.itself] * self.depth), -1))
        self.cache = read.cache
        return tokens, read.logits


def gumbel(step: int) -> Tensor:
    """Noise for every place of a text, the same for all texts of a step."""
    uniform = torch.rand(DEPTHS, LENGTH - DEPTHS - 1, VOCABULARY, generator=torch.Generator().manual_seed(step))
    return -(-uniform.clamp(1e-9, 1 - 1e-7).log()).log()


def measured(network: Callable[[Tensors], Network], tensors: Tensors, world: World, inputs: Inputs = Inputs(),
             texts: Tensor | None = None) -> dict[str, list[float]]:  # fmt: skip
    """Overlap by depth and tau of each seed, on texts of the target that nobody learned from."""

    def follow(weights: Tensors, read: Read, words: Tensor) -> tuple[Tensor, Tensor]:
        steps = rollout(network(weights), read, words, inputs)
        return torch.stack([x.p for x in steps]), torch.stack([x.logits for x in steps])

    words = world.measured() if texts is None else texts
    with torch.no_grad():
        p, q = over_texts(follow, tensors, world, words)
    return overlaps(p, q, words)


def overlaps(p: Tensor, q: Tensor, words: Tensor) -> dict[str, list[float]]:
    """From logits [seeds, texts, depths, m, V] at places 0 .. m - 1, depth s being about the word at i + 2 + s.

    overlap  by depth, the mean of sum min(p, q)
    tau      the mean number of tokens per pass of `leviathan` at temperature 1: the text is the target's own, so drafts
             up to depth s are accepted with the mean of the product of min(1, q / p) at its words
    """
    p, q = p.softmax(-1)[..., BEGINNING:, :], q.softmax(-1)[..., BEGINNING:, :]
    depths, count = p.shape[2], p.shape[3]
    drawn = torch.stack([words[..., BEGINNING + 2 + s :][..., :count] for s in range(depths)], 2)[..., None]
    kept = (q.gather(-1, drawn) / p.gather(-1, drawn)).clamp(max=1).cumprod(2)
    by_depth = torch.minimum(p, q).sum(-1).mean((1, 3))
    return {f"overlap {s + 1}": by_depth[:, s].tolist() for s in range(depths)} | {
        "tau": (1 + kept.sum(2).mean((1, 2, 3))).tolist()
    }
