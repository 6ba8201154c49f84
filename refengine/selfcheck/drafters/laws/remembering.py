"""Targets and drafters that remember their passes: see `memo.py`."""

import dataclasses
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any, TypeAlias

import torch

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.drafters.deepseek_mtp import ModuleChain
from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence
from refengine.decoder.targets.recurrent import RecurrentTarget, step
from refengine.decoder.targets.transformers import Forward, Inputs, Outputs, TransformersTarget, forward
from refengine.selfcheck.drafters.laws.memo import Remembered, content, remembered
from refengine.source_tree import FIXTURES

AnyTarget: TypeAlias = TransformersTarget | RecurrentTarget


def target_that_remembers(folder: str) -> AnyTarget:
    """A target of fixtures/ in float64, without a history. All that are made of one folder share what they remember."""
    return _maker(folder)()


@cache
def _maker(folder: str) -> Callable[[], AnyTarget]:
    loaded = load_target(FIXTURES / folder, torch.float64)
    if isinstance(loaded, TransformersTarget):
        return partial(TransformersTarget, loaded.model, appending(partial(forward, loaded.model)))
    return partial(RecurrentTarget, loaded.model, remembered(partial(step, loaded.model)))


def appending(forward: Forward) -> Forward:
    """`memo.remembered` of a pass that appends its rows to the cache: these are remembered too, and appended again."""
    known: dict[Hashable, tuple[Outputs, Cache]] = {}

    def lookup(inputs: Inputs) -> Outputs:
        key = content(dataclasses.replace(inputs, past=inputs.past.pairs()))  # type: ignore[arg-type]
        if key in known:
            outputs, rows = known[key]
            inputs.past.append(rows)
            return outputs
        outputs, new = forward(inputs), len(inputs.tokens)
        known[key] = outputs, tuple((k[:, :, -new:].clone(), v[:, :, -new:].clone()) for k, v in inputs.past.pairs())
        return outputs

    return lookup


def recurrence(drafter: FeatureRecurrence) -> FeatureRecurrence:
    """The same drafter, the passes of its network remembered."""
    return FeatureRecurrence(Remembered(drafter.network), drafter.plan)


def modules(drafter: ModuleChain) -> ModuleChain:
    """The same drafter, the passes of each module remembered."""
    remembering: Any = [Remembered(module) for module in drafter.modules]
    return ModuleChain(remembering)
