"""The tiny Gemma-4 target and its assistant, for the tests of that row."""

import dataclasses
import json
from typing import Any

import torch
from torch import Tensor

from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.gemma4_assistant import read_shape
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.drafters.gemma4_assistant import Gemma4Assistant, Shape
from refengine.decoder.loop import begin
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.policy import pipeline, temperature
from refengine.source_tree import FIXTURES

GEMMA = FIXTURES / "gemma4"
CONFIG = json.loads((GEMMA / "assistant" / "config.json").read_text())
FULL, WINDOW = "full_attention", CONFIG["text_config"]["sliding_window"]
PROMPT = (5, 4, 0, 4, 0, 6, 3, 2)
SAMPLED = pipeline(temperature(1.0))


def gemma(dtype: torch.dtype = torch.float64) -> TransformersTarget:
    target = load_target(GEMMA / "target", dtype)
    assert isinstance(target, TransformersTarget)
    return target


TARGET = gemma()


def assistant(gamma: int = 2, **changes: Any) -> Gemma4Assistant:
    """The fixture's, with some of its sizes or switches changed."""
    loaded: Any = load_drafter(GEMMA / "assistant", TARGET, gamma=gamma)
    return Gemma4Assistant(dataclasses.replace(loaded.shape, **changes), loaded.w.tensors, loaded.backbone, gamma)


def outputs(drafter: Gemma4Assistant, target: TransformersTarget = TARGET) -> Tensor:
    """Logits and state of three steps after a prompt that is longer than the window."""
    drafter.start(PROMPT, begin(target, PROMPT, drafter.taps))
    keys, hidden, found = drafter.keys(len(PROMPT) + 1), drafter.hidden, []
    for token in (3, 1, 6):
        step = drafter.step(torch.tensor([token]), hidden, torch.tensor([len(PROMPT)]), keys)
        hidden = step.hidden
        found += [step.logits[0], step.hidden[0]]
    return torch.cat(found)


def shape_of(**text: Any) -> Shape:
    fields = {name: x for name, x in {**CONFIG["text_config"], **text}.items() if x != "absent"}
    return read_shape(Config("config.json", {**CONFIG, "text_config": fields}))
