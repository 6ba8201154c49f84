"""Prediction modules that learn together with their target, and modules that learn once the target is done."""

import torch
from torch import Tensor

from benchmarks.training.joint import MODEST, MODULES, SENTENCES, STEPS, ahead, measured, train
from benchmarks.training.rollouts import Values
from benchmarks.training.world import Tensors, World, learn, speak
from fixtures.train import losses


def modules(_: World) -> Values:
    """The same chain under DeepSeek's loss, for as many steps on the same sentences: from the start, or afterwards."""
    return {"together": measured(train(MODEST, True), True), "afterwards": measured(train_afterwards(), True)}


def train_afterwards() -> Tensors:
    """A target that learned alone and stays as it is, its embedding and head among it; then the modules."""
    tensors = train(0.0, True)

    def one(weights: Tensors, words: Tensor) -> Tensor:
        _, own = torch.vmap(lambda text: ahead(weights, text, True))(words)
        tokens = [words[:, 2 + k :][:, : own.shape[2]].flatten() for k in range(MODULES)]
        return losses.deepseek([own[:, k].flatten(0, 1) for k in range(MODULES)], tokens, MODEST)

    def at(step: int) -> Tensor:
        return torch.vmap(one)(tensors, speak(SENTENCES, 700_000 + step))

    learn(tensors, STEPS, at, lambda name: name.startswith("mtp."))
    return tensors
