"""The decoder on a GPU, where there is one."""

import json
from pathlib import Path

import pytest
import torch

from refengine.decoder import generate, load_drafter, load_target
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules.leviathan import leviathan

FIXTURES = Path(__file__).parents[1] / "fixtures"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="not tested: this machine has no CUDA device")


@pytest.mark.parametrize("name", ["tiny/ar", "tiny/dspark", "gemma4/assistant"])
def test_cuda_decodes_what_the_cpu_decodes(name: str) -> None:
    """Kills a tensor left on the CPU, and coins that depend on the device."""
    outputs = {}
    for device in ("cpu", "cuda"):
        target = load_target((FIXTURES / name).with_name("target"), torch.float64, device)
        drafter = load_drafter(FIXTURES / name, target, gamma=3)
        coins = Philox(3, torch.tensor([0], device=device))
        outputs[device] = [
            generate(target, drafter, leviathan, pipeline(step), prompt["prompt"], 32, coins).tokens
            for prompt in json.loads((FIXTURES / name).with_name("prompts.json").read_text())
            for step in (greedy(), temperature(0.9))
        ]
    assert outputs["cpu"] == outputs["cuda"]
