"""Heads on the target's last hidden state: Medusa's, and a head that scores the tokens of a few centroids alone."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from benchmarks.training.recurrences import train_eagle1
from benchmarks.training.rollouts import (
    DEPTHS,
    EAGLE1,
    MTP,
    Values,
    measured,
    over_texts,
    overlaps,
    rollout,
    start_mtp,
    train,
)  # fmt: skip
from benchmarks.training.world import (
    BATCH,
    CORPUS,
    HIDDEN,
    LAYERS,
    PLAIN,
    SEEDS,
    VOCABULARY,
    Read,
    Tensors,
    World,
    seeded,
    speak,
)  # fmt: skip
from fixtures.train import losses
from refengine.decoder.checkpoints.layouts import medusa
from refengine.decoder.drafters.eagle1 import Eagle1
from refengine.decoder.drafters.gemma4_assistant import Gemma4Assistant
from refengine.decoder.drafters.medusa import Medusa, Shape
from refengine.decoder.drafters.qwen_mtp import QwenMTP
from refengine.decoder.networks.layers import Weights

MEDUSA = Shape(heads=DEPTHS, layers=1, vocab_size=VOCABULARY, hidden_size=HIDDEN, num_target_layers=LAYERS)
CENTROID = "masked_embedding.centroids"  # the name of their scores in Gemma 4's file
CENTROIDS, BEST = 6, 2  # so many clusters of equally many tokens, of which so many are scored
SOON = 100  # steps after which a warm start should still show


# --- Medusa ----------------------------------------------------------------------------------------------------------


def medusa_heads(world: World) -> Values:
    """Medusa's heads before and after they are distilled from the frozen target's own outputs."""
    before = {name: x.clone() for name, x in world.target.items()}
    start, tensors = start_medusa(world), train_medusa(world)
    if any(not torch.equal(x, before[name]) for name, x in world.target.items()):
        raise RuntimeError("distilling the heads changed the target that is to be frozen")
    return {"before": measured_heads(start, world), "after": measured_heads(tensors, world)}


def own_outputs(world: World) -> Values:
    """Medusa's heads and EAGLE-1 trained on texts of the target, and on as many of the language itself."""
    texts = speak(CORPUS, 9, PLAIN)

    def of_the_language(step: int) -> Tensor:
        return texts[:, torch.randint(CORPUS, (BATCH,), generator=torch.Generator().manual_seed(step))]

    found = {}
    for name, source in {"own outputs": None, "text": of_the_language}.items():
        found[f"Medusa, {name}"] = measured_heads(train_medusa(world, source), world)
        eagle = train_eagle1(world, texts=source)
        found[f"EAGLE-1, {name}"] = measured(lambda w: Eagle1(EAGLE1, w), eagle, world)
    return found


def start_medusa(world: World) -> Tensors:
    """As released: residual blocks of nothing, and copies of the target's own head."""
    copies = [f"{i}.{MEDUSA.layers}.weight" for i in range(MEDUSA.heads)]
    return {
        name: world.target["lm_head.weight"].clone() if name in copies else x * 0
        for name, x in seeded(medusa.heads(MEDUSA), "medusa").items()
    }


def train_medusa(world: World, texts: Callable[[int], Tensor] | None = None) -> Tensors:
    """Medusa's loss: each head's hard cross-entropy with the words of the texts."""

    def loss(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        return losses.medusa(Medusa(MEDUSA, weights, ()).heads(read.states[LAYERS])[:, None], words[None])

    return train(start_medusa(world), world, loss, texts)


def measured_heads(tensors: Tensors, world: World) -> dict[str, list[float]]:
    """Head s at place i is about the word at i + 2 + s; the word at i + 1, of which it knows nothing, is the anchor."""

    def follow(weights: Tensors, read: Read, words: Tensor) -> tuple[Tensor, Tensor]:
        count = len(words) - DEPTHS - 1
        q = Medusa(MEDUSA, weights, ()).heads(read.states[LAYERS])[:, :count]
        return torch.stack([read.logits[1 + s :][:count] for s in range(DEPTHS)]), q

    with torch.no_grad():
        p, q = over_texts(follow, tensors, world, world.measured())
    return overlaps(p, q, world.measured())


# --- centroids -------------------------------------------------------------------------------------------------------


def centroids(world: World) -> Values:
    """A module that scores the tokens of its best centroids alone: clusters and centroids by k-means, or by chance."""
    random = [torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(seed)) for seed in range(SEEDS)]
    warm = [clusters(head) for head in world.target["lm_head.weight"]]
    starts = {
        "k-means": (
            warm,
            torch.stack([means(x, y) for x, y in zip(world.target["lm_head.weight"], warm, strict=True)]),
        ),
        "clusters alone": (warm, seeded({"centroids": (CENTROIDS, HIDDEN)}, "cold")["centroids"]),
        "cold": (random, seeded({"centroids": (CENTROIDS, HIDDEN)}, "cold")["centroids"]),
    }
    found: Values = {}
    for name, (ordering, first) in starts.items():
        for steps in (SOON, 4 * SOON):
            lent = World(world.target | {"ordering": torch.stack(list(ordering))}, world.kept)
            tensors = train_centroids(lent, first.clone(), steps)
            found[f"{name}, {steps} steps"] = measured_centroids(tensors, lent)
            if name == "k-means":
                found[f"every token, {steps} steps"] = measured(lambda w: QwenMTP(MTP, w), tensors, lent)
    for steps in (SOON, 4 * SOON):
        whole, cold = (found[f"{x}, {steps} steps"]["overlap 1"] for x in ("every token", "cold"))
        closed = zip(found[f"k-means, {steps} steps"]["overlap 1"], cold, whole, strict=True)
        found[f"k-means, {steps} steps"]["share of the gap"] = [
            (warm - cold) / (full - cold) for warm, cold, full in closed
        ]
        found[f"half, {steps} steps"] = {"share of the gap": [0.5] * SEEDS}
    return found


def train_centroids(world: World, first: Tensor, steps: int) -> Tensors:
    """The module on the soft cross-entropy of the whole vocabulary, its centroids on that of their clusters."""

    def loss(weights: Tensors, read: Read, words: Tensor) -> Tensor:
        (step,) = rollout(QwenMTP(MTP, weights), read, words, depths=1)
        p = step.p.softmax(-1)
        mass = p[:, weights["target.ordering"]].view(len(p), CENTROIDS, -1).sum(-1)
        scores = step.hidden @ weights[f"{CENTROID}.weight"].T
        return losses.training_time_test([p], [step.logits]) + losses.training_time_test([mass], [scores])

    return train(start_mtp(world) | {f"{CENTROID}.weight": first}, world, loss, steps=steps)


def measured_centroids(tensors: Tensors, world: World) -> dict[str, list[float]]:
    """Overlap of the first drafted token's row, over the tokens that Gemma 4's head scores."""
    sizes = SimpleNamespace(
        num_centroids=CENTROIDS, centroid_intermediate_top_k=BEST, vocab_size=VOCABULARY, tie_word_embeddings=False
    )

    def follow(weights: Tensors, read: Read, words: Tensor) -> tuple[Tensor, Tensor]:
        (step,) = rollout(QwenMTP(MTP, weights), read, words, depths=1)
        w = Weights(weights | {"masked_embedding.token_ordering": weights["target.ordering"]})
        head: Any = SimpleNamespace(shape=sizes, w=w)
        logits, scored = Gemma4Assistant.head(head, step.hidden)
        return step.p[None], logits.masked_fill(~scored, float("-inf"))[None]

    with torch.no_grad():
        p, q = over_texts(follow, tensors, world, world.measured())
    return {"overlap 1": overlaps(p, q, world.measured())["overlap 1"]}


def clusters(rows: Tensor) -> Tensor:
    """Tokens [V], cluster after cluster of equal size: k-means in which the nearest pairs of row and mean go first."""
    size = len(rows) // CENTROIDS
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    for _ in range(20):
        distance = torch.cdist(rows, means(rows, order))
        left, found = dict.fromkeys(range(CENTROIDS), size), dict[int, int]()
        for place in distance.flatten().argsort(stable=True).tolist():
            token, cluster = divmod(place, CENTROIDS)
            if token not in found and left[cluster]:
                found[token], left[cluster] = cluster, left[cluster] - 1
        order = torch.tensor(sorted(found, key=lambda token: (found[token], token)))
    return order


def means(rows: Tensor, order: Tensor) -> Tensor:
    """The mean row of each cluster."""
    return rows[order].view(CENTROIDS, -1, rows.shape[-1]).mean(1)
