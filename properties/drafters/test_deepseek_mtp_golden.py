"""DeepSeek-V3's prediction modules against recordings of transformers: one module, and two in a chain."""

import json
from functools import cache
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.deepseek_mtp import Module, ModuleChain, Recycled
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.networks.feature_recurrence import FeatureRecurrence
from refengine.decoder.protocols import Target
from refengine.engine.policy import greedy, pipeline
from refengine.engine.rules.leviathan import leviathan
from refengine.source_tree import GOLDEN

pytestmark = [
    pytest.mark.peer("deepseek_mtp", case="hf_dsv3_mtp_A"),
    pytest.mark.peer("deepseek_mtp2", case="hf_dsv3_mtp2_A"),
]

CASES = ["hf_dsv3_mtp_A", "hf_dsv3_mtp2_A"]
LENGTHS = (7, 12, 18)


@cache
def tensors(case: str) -> dict[str, Tensor]:
    return load_file(GOLDEN / case / "golden.safetensors")


@cache
def target(case: str) -> Target:
    return load_target(GOLDEN / case / "target", torch.float32)


def modules(case: str, recycled: Recycled = "normed") -> tuple[Module, ...]:
    loaded = load_drafter(GOLDEN / case / "target", target(case), recycled=recycled)
    network: Any = loaded.network if isinstance(loaded, FeatureRecurrence) else None
    return loaded.modules if isinstance(loaded, ModuleChain) else (network,)


def whole(module: Module, tokens: Tensor, hidden: Tensor) -> Tensor:
    """All rows in one pass."""
    count = len(tokens)
    sees = torch.ones(count, count).tril().bool()
    return module.rows(tokens, hidden, torch.arange(count), module.empty(), sees)[0]


@pytest.mark.parametrize("case", CASES)
def test_the_target(case: str) -> None:
    """Kills a target whose cache of latents, mask or tap is not the official one."""
    t = tensors(case)
    passed = begin(target(case), tuple(t["ids"][0].tolist()), (4,))
    assert_close(passed.taps[4], t["target.hs.4"][0])
    assert_close(passed.logits, t["target.logits"][0])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_every_module(case: str, length: int) -> None:
    """Kills a wrong order of embedding and hidden state, a state before the target's norm, a missing norm, a wrong
    expert, group, weight or rotation, a module fed with the rows of another, and raw taken for normed."""
    t, prefix = tensors(case), f"mtp.prefill{length}"
    hidden, tokens = t["target.hs.4"][0, : length - 1], t["ids"][0, 1:length]
    both = zip(modules(case, "normed"), modules(case, "raw"), strict=True)
    for depth, (normed, raw) in enumerate(both):
        golden = {name: t[f"{prefix}.depth{depth}.{name}"][0] for name in ("block_out", "out")}
        assert_close(whole(raw, tokens, hidden), golden["block_out"])
        hidden = whole(normed, tokens, hidden)
        assert_close(hidden, golden["out"])
        for module, put_out in ((raw, golden["block_out"]), (normed, golden["out"])):
            assert_close(module.logits(put_out[-1:]), t[f"{prefix}.logits"][0, depth : depth + 1])
        tokens = torch.cat((tokens[1:], t[f"{prefix}.tokens"][0, depth : depth + 1]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("trace", range(4))
def test_traces(case: str, trace: int) -> None:
    """Kills rows of rejected drafts that stay in a cache, a deeper module that misses a row, a wrong accept."""
    t = {k.removeprefix(f"trace.{trace}."): v for k, v in tensors(case).items() if k.startswith(f"trace.{trace}.")}
    drafter = load_drafter(GOLDEN / case / "target", target(case), gamma=1 if "mtp2" not in case else None)
    session = Session(target(case), drafter, leviathan, pipeline(greedy()), 10**6)
    session.begin(tuple(t["prompt"][0].tolist()), COINS)
    ids = tuple(t["ids"][0].tolist())
    rounds = list(zip(*(t[name].tolist() for name in ("prefix_len", "drafts", "accepted")), strict=True))
    for i, (length, drafts, accepted) in enumerate(rounds):
        assert session.prompt + session.out == ids[:length]
        session.play(COINS)
        assert list(nodes(session.rounds[-1].block)[0]) == drafts
        if i + 1 < len(rounds):  # the recording cuts the last round where its output ends
            assert len(session.rounds[-1].verdict.path) == accepted
    assert {accepted for _, _, accepted in rounds} >= {0, 1}


@pytest.mark.parametrize("case", CASES)
def test_the_recording_is_of_the_official_code(case: str) -> None:
    """Kills a comparison with weights that leave norms at one or routing unbiased, where some defects are invisible."""
    weights = load_file(GOLDEN / case / "target" / "model.safetensors")
    for name, tensor in weights.items():
        if name.startswith(("model.layers.4.", "model.layers.5.")) and tensor.ndim == 1:
            assert float((tensor - float("norm" in name)).abs().max()) > 0.05, name
    assert json.loads((GOLDEN / case / "golden.json").read_text())["versions"]["transformers"] == "5.23.0"
