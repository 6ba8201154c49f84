"""The decoder on a GPU, where there is one: every drafter of the table."""

import json

import pytest
import torch

from refengine.decoder import generate, load_target
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.selfcheck.drafters.cells import RULES
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

CUDA = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="not tested: this machine has no CUDA device"),
]
NEW_TOKENS = 24


def decoded(name: str, device: str) -> list[Tokens]:
    """Greedy and sampled output of a drafter on a device, after every fixture prompt."""
    row = ROWS[name]
    target = load_target(FIXTURES / row.target, torch.float64, device)
    drafter, coins = row.load(target), Philox(3, torch.tensor([0], device=device))
    return [
        generate(target, drafter, RULES[row.rules[0]], pipeline(step), prompt["prompt"], NEW_TOKENS, coins).tokens
        for prompt in json.loads((FIXTURES / row.target).with_name("prompts.json").read_text())
        for step in (greedy(), temperature(0.9))
    ]


@pytest.mark.parametrize("name", [pytest.param(name, marks=CUDA) for name in ROWS])
def test_cuda_decodes_what_the_cpu_decodes(name: str) -> None:
    """Kills a tensor left on the CPU, and coins that depend on the device."""
    assert decoded(name, "cuda") == decoded(name, "cpu")


@pytest.mark.parametrize("name", ["dart", "qwen_mtp"])
def test_what_is_compared_is_drawn_and_differs(name: str) -> None:
    """Kills a comparison of empty or of constant outputs, which would hold on any device."""
    outputs = decoded(name, "cpu")
    assert {len(tokens) for tokens in outputs} == {NEW_TOKENS}
    assert len(set(outputs)) == len(outputs) > 8
