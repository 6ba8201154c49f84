"""The tiny EAGLE drafters, each with the plan that its tests use, on the tiny target."""

from collections.abc import Callable
from pathlib import Path

import torch

from refengine.decoder import load_target
from refengine.decoder.checkpoints.layouts.eagle1 import load_eagle1
from refengine.decoder.checkpoints.layouts.eagle3 import load_eagle3
from refengine.decoder.drafters.eagle_trees import Chain, DynamicTree, StaticTree
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.decoder.protocols import Target
from refengine.engine.policy import pipeline, temperature
from refengine.source_tree import FIXTURES

TARGET = load_target(FIXTURES / "tiny" / "target", torch.float64)
SAMPLED = pipeline(temperature(0.8))
LOAD: dict[str, Callable[[Path, Target, Plan | None], FeatureRecurrence]] = {
    "eagle1": load_eagle1,
    "eagle3": load_eagle3,
    "eagle3_deepspec": load_eagle3,
}
PLANS: dict[str, Plan] = {
    "eagle1": StaticTree(((0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0))),
    "eagle3": DynamicTree(7, 2, 3),
    "eagle3_deepspec": Chain(3),
}


def loaded(name: str, plan: Plan | None = None) -> FeatureRecurrence:
    return LOAD[name](FIXTURES / "eagle" / name, TARGET, plan or PLANS[name])
