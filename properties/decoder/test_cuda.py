"""The decoder on a GPU, where there is one: what it computes is what a CPU computes; its bits and its laws.

`make gpu` runs these and writes what they record to benchmarks/results/gpu.json.
"""

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from properties.helpers.histories import World, model, wander
from refengine.decoder import generate, load_target, plain
from refengine.decoder.loop import Session, Stop
from refengine.decoder.protocols import State, Tokens
from refengine.decoder.rows import chain_rows
from refengine.decoder.targets import bitwise
from refengine.decoder.targets.recurrent import step
from refengine.decoder.targets.transformers import TransformersTarget, forward
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules import RULES
from refengine.engine.rules.agreement import agreement
from refengine.exact.law import tv
from refengine.selfcheck.drafters.bits import Alone, Heard, Listened
from refengine.selfcheck.drafters.company import Company, drawn
from refengine.selfcheck.drafters.laws.cells import CELLS, EXACT, POLICIES, completed, target_law
from refengine.selfcheck.drafters.laws.exact_law import Enumeration
from refengine.selfcheck.drafters.laws.memo import remembered
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module
from refengine.source_tree import FIXTURES

CUDA = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="not tested: this machine has no CUDA device"),
]
NEW_TOKENS = 24
DRAFTERS = [pytest.param(name, marks=CUDA) for name in ROWS]
# A number goes through at most four layers of about sixteen roundings each.
ROUNDINGS = 64
Record = Callable[[str, object], None]


def prompts(name: str) -> list[Tokens]:
    file = (FIXTURES / ROWS[name].target).with_name("prompts.json")
    return [tuple(prompt["prompt"]) for prompt in json.loads(file.read_text())]


def decoded(name: str, device: str) -> list[Tokens]:
    """Greedy and sampled output of a drafter on a device, after every fixture prompt."""
    row = ROWS[name]
    target = load_target(FIXTURES / row.target, torch.float64, device)
    drafter, coins = row.load(target), Philox(3, torch.tensor([0], device=device))
    return [
        generate(target, drafter, RULES[row.rules[0]], pipeline(policy), prompt, NEW_TOKENS, coins).tokens
        for prompt in prompts(name)
        for policy in (greedy(), temperature(0.9))
    ]


@pytest.mark.parametrize("name", DRAFTERS)
def test_cuda_decodes_what_the_cpu_decodes(name: str) -> None:
    """Kills a tensor left on the CPU, and coins that depend on the device."""
    assert decoded(name, "cuda") == decoded(name, "cpu")


@pytest.mark.parametrize("name", ["dart", "qwen_mtp"])
def test_what_is_compared_is_drawn_and_differs(name: str) -> None:
    """Kills a comparison of empty or of constant outputs, which would hold on any device."""
    outputs = decoded(name, "cpu")
    assert {len(tokens) for tokens in outputs} == {NEW_TOKENS}
    assert len(set(outputs)) == len(outputs) > 8


def states(name: str, dtype: torch.dtype, device: str) -> list[State]:
    """Live state of target and drafter after each prompt and a fixed continuation, and the logits after it."""
    row = ROWS[name]
    target = load_target(FIXTURES / row.target, dtype, device)
    session = Session(target, row.load(target), RULES[row.rules[0]], pipeline(temperature(1.0)), NEW_TOKENS)
    found = []
    for prompt in prompts(name):
        session.rebuild(prompt, (*prompt[::-1], 1, 2, 3, 0))
        state = dict(session.state())
        text = prompt + session.out
        state["logits"] = target.run(chain_rows(text[-1:], len(text) - 1, target.device)).logits
        found.append(state)
    return found


def roundings_apart(some: State, others: State, dtype: torch.dtype) -> float:
    """The largest difference of two states' tensors, in roundings of the largest number of each."""
    worst = 0.0
    for name, x in some.items():
        if isinstance(x, Tensor) and x.is_floating_point() and x.numel():
            apart = (x.cpu().double() - others[name].cpu().double()).abs().max()
            worst = max(worst, float(apart / x.abs().max().double().cpu()) / torch.finfo(dtype).eps)
    return worst


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_networks_compute_what_they_compute_on_the_cpu(name: str, dtype: torch.dtype, record_property: Record) -> None:
    """Kills a computation that is made in another precision on the GPU: TF32, a half where the CPU has a float.

    The tolerance is ROUNDINGS roundings; a norm in half precision, or TF32 (2^-11) in float32, is beyond it.
    """
    pairs = zip(states(name, dtype, "cpu"), states(name, dtype, "cuda"), strict=True)
    apart = max(roundings_apart(a, b, dtype) for a, b in pairs)
    record_property("roundings apart", apart)
    assert apart <= ROUNDINGS


# --- bits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=CUDA) for kind in ("dense", "experts", "wide")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_bits_of_any_history_on_cuda(kind: str, dtype: torch.dtype, record_property: Record) -> None:
    """Kills kernels that are chosen by what a pass holds, and lanes that differ."""
    world = World(model(kind, dtype, "cuda"))
    wander(world, random.Random(1), 120 if kind == "dense" else 40)
    record_property("lanes", world.lanes)
    record_property("rows compared", world.heard.compared)
    record_property("rows that differ", len(world.heard.differing))
    assert world.heard.compared > 200
    assert world.heard.differing == []


@pytest.mark.parametrize("dtype", [pytest.param(d, marks=CUDA) for d in (torch.float32, torch.bfloat16)], ids=str)
def test_a_changed_kernel_shape_is_found_on_cuda(dtype: torch.dtype, record_property: Record) -> None:
    """Kills a comparison that cannot fail: without the padding, passes have other shapes and so other kernels."""
    edit = Edit(bitwise.__name__, "idle = len(tokens), target.lanes - len(tokens)", "idle = len(tokens), 0")
    world = World(model("wide", dtype, "cuda"), edited_module(bitwise.__name__, [edit]), bitwise.LANES)
    wander(world, random.Random(2), 30)
    record_property("rows compared", world.heard.compared)
    record_property("rows that differ", len(world.heard.differing))
    assert world.heard.differing


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_bitwise_speculative_output_is_plain_output_on_cuda(
    name: str, dtype: torch.dtype, record_property: Record
) -> None:
    """Kills a tie that excuses, greedily and under `agreement`."""
    row, coins = ROWS[name], Philox(5, torch.tensor([0], device="cuda"))
    target: Any = load_target(FIXTURES / row.target, dtype, "cuda", slots=64)
    other = type(target)(target.model, slots=64)
    heard = Heard(Alone(other))
    judge = Listened(target, heard)
    drafter = row.load(judge)
    for law, policy in ((RULES[row.rules[0]], pipeline(greedy())), (agreement, pipeline(temperature(0.9)))):
        ours = generate(judge, drafter, law, policy, row.prompt, 16, coins).tokens
        assert ours == plain(other, policy, row.prompt, 16, coins)
    record_property("rows compared", heard.compared)
    assert heard.differing == []


@pytest.mark.parametrize("slots", [pytest.param(slots, marks=CUDA) for slots in (None, 32)])
def test_company_changes_nothing_on_cuda(slots: int | None, record_property: Record) -> None:
    """Kills a padded pass that shows padding, on kernels of a GPU; bit for bit in the bitwise mode."""
    company = Company(ROWS["dspark"], torch.float32 if slots else torch.float64, slots, device="cuda")
    source = random.Random(6)
    wrong = [one for _ in range(20) for one in company.play(drawn(source, range(100)))]
    record_property("requests", len(company.said))
    record_property("rows that differ", len(company.heard.differing))
    assert wrong == []
    assert company.heard.differing == []


# --- laws ------------------------------------------------------------------------------------------------------------

LAW = ("ar", "dspark", "eagle1", "eagle2", "medusa", "deepseek_mtp", "gemma4_assistant", "parallel_heads", "qwen_mtp")
LAWS = [f"{name}/{ROWS[name].rules[0]}/mixed/stop" for name in LAW]


@pytest.mark.parametrize("name", [pytest.param(name, marks=CUDA) for name in LAWS])
def test_exact_law_of_the_loop_on_cuda(name: str, record_property: Record) -> None:
    """Kills an index, a mask or a scatter that does otherwise on a GPU: two rounds against the rows of a CPU."""
    cell, row = CELLS[name], ROWS[CELLS[name].drafter]
    loaded: Any = load_target(FIXTURES / row.target, torch.float64, "cuda")
    run = partial(forward if isinstance(loaded, TransformersTarget) else step, loaded.model)
    target = type(loaded)(loaded.model, remembered(run))
    drafter = row.remembered(row.load(target))
    stop = Stop(frozenset(cell.stop))
    play = Session(target, drafter, RULES[cell.rule], POLICIES[cell.policy], cell.length, stop)
    found = Enumeration(play, cell.prompt).rounds(2)
    distance = tv(completed(cell, found), target_law(cell))
    record_property("rounds enumerated", found.runs)
    record_property("tv", distance)
    assert found.mismatches == []
    assert distance <= EXACT
