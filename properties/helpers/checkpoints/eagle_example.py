"""The tiny EAGLE drafters, each with the plan that its tests use, on the tiny target."""

from typing import Any

import torch

from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.eagle_trees import Chain, DynamicTree, StaticTree
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence, Plan
from refengine.engine.policy import pipeline, temperature
from refengine.source_tree import FIXTURES

TARGET = load_target(FIXTURES / "tiny" / "target", torch.float64)
SAMPLED = pipeline(temperature(0.8))
PLANS: dict[str, Plan] = {
    "eagle1": StaticTree(((0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0))),
    "eagle3": DynamicTree(7, 2, 3),
    "eagle3_deepspec": Chain(3),
}


def loaded(name: str, plan: Plan | None = None) -> FeatureRecurrence:
    """EAGLE-1 grows the tree of EAGLE-2, unless another is given."""
    drafter: Any = load_drafter(
        FIXTURES / "eagle" / name, TARGET, plan=plan or (DynamicTree() if name == "eagle1" else None)
    )
    return drafter
