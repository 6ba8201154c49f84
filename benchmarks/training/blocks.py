"""DSpark's two heads, trained anew on a frozen backbone, as the document's last section does."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from benchmarks.training.rollouts import SHARED, Values, over_texts, overlaps, shared
from benchmarks.training.world import (
    CORPUS,
    EPS,
    HIDDEN,
    INNER,
    LENGTH,
    MEASURED,
    PLAIN,
    SEEDS,
    VOCABULARY,
    WIDTH,
    Read,
    Tensors,
    World,
    layer_shape,
    learn,
    seeded,
)  # fmt: skip
from fixtures.train import losses
from refengine.decoder.networks.block_backbone import Backbone, Shape
from refengine.decoder.networks.layers import Weights
from refengine.decoder.networks.rope import Rope
from refengine.decoder.protocols import Pass

BLOCK, RANK, ANCHORS = 4, 8, 3  # slots, width of the Markov head, anchors of a text in one step
STEPS, HEAD_STEPS = 300, 120
HEADS = ("markov_w1.weight", "markov_w2.weight", "confidence.weight", "confidence.bias")
# One table of two rows for every text, its anchor's embedding and the mask's, so that an anchor may differ by text.
SHAPE = Shape(
    vocab_size=2, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, head_dim=WIDTH, attention_bias=False, rms_norm_eps=EPS, rope=Rope(10000.0), taps=(1, 2, 3),
    block_size=BLOCK, mask_token_id=1, windows=(None, None),
)  # fmt: skip


def dspark_heads(world: World) -> Values:
    """A drafter trained whole; its backbone with heads that start anew (no bias: a parallel block); those trained."""
    whole = start(world)
    train(whole, world, STEPS, lambda name: name not in SHARED)
    anew = whole | new_heads()
    before = {name: x.clone() for name, x in anew.items()}
    train(anew, world, HEAD_STEPS, lambda name: name in HEADS)
    if any(not torch.equal(x, before[name]) for name, x in anew.items() if name not in HEADS):
        raise RuntimeError("training the heads changed the backbone that is to be frozen")
    return {name: measured(x, world) for name, x in {"whole": whole, "before": before, "after": anew}.items()}


def start(world: World) -> Tensors:
    shape = layer_shape("layers.0") | layer_shape("layers.1") | {"mask": (HIDDEN,)}
    shape |= {"fc.weight": (HIDDEN, 3 * HIDDEN), "hidden_norm.weight": (HIDDEN,), "norm.weight": (HIDDEN,)}
    return seeded(shape, "dspark") | new_heads() | shared(world)


def new_heads() -> Tensors:
    """Markov and confidence heads as the document starts them: W1 of deviation 0.02, W2 nothing."""
    generator = torch.Generator().manual_seed(41)
    sizes = (VOCABULARY, RANK), (HIDDEN + RANK,)
    first, confidence = (0.02 * torch.randn(SEEDS, *size, generator=generator) for size in sizes)
    return {
        "markov_w1.weight": first,
        "markov_w2.weight": torch.zeros(SEEDS, VOCABULARY, RANK),
        "confidence.weight": confidence,
        "confidence.bias": torch.zeros(SEEDS),
    }


def train(tensors: Tensors, world: World, steps: int, free: Callable[[str], bool]) -> None:
    """DSpark's loss on blocks after some places of the target's texts, in place."""

    def at(step: int) -> Tensor:
        places = torch.randperm(LENGTH - BLOCK - 1, generator=torch.Generator().manual_seed(step))[:ANCHORS] + 1

        def loss(weights: Tensors, read: Read, words: Tensor) -> Tensor:
            found = zip(*blocks(weights, read, words, places.tolist()), strict=True)
            p, logits, tokens, confidence = (torch.stack(x) for x in found)
            return losses.dspark(p.softmax(-1), logits, tokens, confidence)

        return over_texts(loss, tensors, world, world.corpus(step)).mean(-1)

    learn(tensors, steps, at, free)


def blocks(weights: Tensors, read: Read, words: Tensor, places: Sequence[int]) -> Iterator[tuple[Tensor, ...]]:
    """After the anchor at each place: the target's logits and the draft's [block, V], the words, the confidences.

    Slot s is told the text's own word before the one that it is about, at place + 1 + s.
    """
    for place in places:
        pair = torch.stack((weights["embed_tokens.weight"][words[place]], weights["mask"]))
        backbone = Backbone(SHAPE, Weights(weights | {"embed_tokens.weight": pair}))
        taps = {j: read.states[j][:place] for j in SHAPE.taps}
        backbone.extend(Pass(words[:place], torch.arange(place), read.logits[:place], taps))
        hidden, before = backbone.block(0, place), weights["markov_w1.weight"][words[place:][:BLOCK]]
        logits = hidden @ weights["lm_head.weight"].T + before @ weights["markov_w2.weight"].T
        confidence = torch.cat((hidden, before), -1) @ weights["confidence.weight"] + weights["confidence.bias"]
        yield read.logits[place:][:BLOCK], logits, words[place + 1 :][:BLOCK], confidence


def measured(tensors: Tensors, world: World) -> dict[str, list[float]]:
    """On the texts that were learned from, as the document does, and on others."""

    def follow(weights: Tensors, read: Read, words: Tensor) -> tuple[Tensor, Tensor]:
        found = list(blocks(weights, read, words, range(1, LENGTH - BLOCK)))
        return torch.stack([x[0] for x in found], 1), torch.stack([x[1] for x in found], 1)

    learned = world.write(CORPUS, 7, PLAIN)[:, :MEASURED]
    with torch.no_grad():
        p, q = over_texts(follow, tensors, world, world.measured())
        known = overlaps(*over_texts(follow, tensors, world, learned), learned)
    return overlaps(p, q, world.measured()) | {"tau on texts learned from": known["tau"]}
