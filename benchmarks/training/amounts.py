"""What a drafter makes of more texts under two losses, and of a wider view in two sizes."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.training.recurrences import train_eagle1
from benchmarks.training.rollouts import (
    EAGLE1,
    EAGLE3,
    SHARED,
    Values,
    measured,
    rollout,
    shared,
    start_eagle1,
    train,
)  # fmt: skip
from benchmarks.training.world import BATCH, CORPUS, INNER, LAYERS, PLAIN, Read, Tensors, World, seeded
from fixtures.train import losses
from refengine.decoder.checkpoints.layouts import eagle3
from refengine.decoder.drafters.eagle1 import Eagle1
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.networks.feature_recurrence import Network

AMOUNTS = (16, 64, CORPUS)  # texts to learn from, the first of the same corpus
SIZES = {"small": INNER // 4, "large": 4 * INNER}  # of the feed-forward
VIEWS = {"fused": (1, 2, 3), "top": (LAYERS, LAYERS, LAYERS)}  # layers that are read; as many parameters either way


def texts(world: World) -> Values:
    """EAGLE-1's network under its own loss, and under EAGLE-3's, on more and more texts in equally many steps."""
    found: Values = {}
    for amount in AMOUNTS:
        source = first(world, amount)
        own = train_eagle1(world, texts=source)
        found[f"EAGLE-1's loss, {amount} texts"] = measured(lambda w: Eagle1(EAGLE1, w), own, world)
        other = rolled(world, lambda w: Eagle1(EAGLE1, w), start_eagle1(world), source)
        found[f"EAGLE-3's loss, {amount} texts"] = measured(lambda w: Eagle1(EAGLE1, w), other, world)
    for loss in ("EAGLE-1's loss", "EAGLE-3's loss"):
        few, most = (found[f"{loss}, {amount} texts"]["tau"] for amount in (AMOUNTS[0], AMOUNTS[-1]))
        found[loss] = {"gain by more texts": [b - a for a, b in zip(few, most, strict=True)]}
    return found


def first(world: World, amount: int) -> Callable[[int], Tensor]:
    """Batches from the first texts of the corpus."""
    some = world.write(CORPUS, 7, PLAIN)[:, :amount]
    return lambda step: some[:, torch.randint(amount, (BATCH,), generator=torch.Generator().manual_seed(step))]


def rolled(
    world: World, net: Callable[[Tensors], Network], start: Tensors, source: Callable[[int], Tensor] | None = None
) -> Tensors:
    """EAGLE-3's loss over a roll-out of a network."""

    def loss(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        steps = rollout(net(weights), read, words)
        return losses.training_time_test([x.p.softmax(-1) for x in steps], [x.logits for x in steps])

    return train(start, world, loss, source)


def sizes(world: World) -> Values:
    """EAGLE-3 with a narrow and with a wide feed-forward, each reading three layers, or the top one three times."""
    found: Values = {}
    for size, inner in SIZES.items():
        for view, taps in VIEWS.items():
            shape = replace(EAGLE3, intermediate_size=inner, taps=taps)
            start = seeded(eagle3.table(shape, set(SHARED)), "eagle3") | shared(world)
            tensors = rolled(world, lambda w, shape=shape: Eagle3(shape, w), start)
            found[f"{size}, {view}"] = measured(lambda w, shape=shape: Eagle3(shape, w), tensors, world)
        pairs = zip(found[f"{size}, fused"]["tau"], found[f"{size}, top"]["tau"], strict=True)
        found[size] = {"gain by fused features": [fused - top for fused, top in pairs]}
    return found
