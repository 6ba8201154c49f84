"""Qwen's multi-token prediction against recordings of speculators' official code, in both layouts."""

import runpy
from functools import cache
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.loop import Session, begin, generate, nodes
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.protocols import Target
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline
from refengine.engine.rules.leviathan import leviathan
from refengine.source_tree import FIXTURES

CASES = ("sp_mtp_qwen3next_A", "sp_mtp_qwen35_A", "sp_mtp_qwen35moe_A")
COINS, GREEDY = Philox(0, torch.tensor([0])), pipeline(greedy())
LOSSES: dict[str, Any] = runpy.run_path(str(FIXTURES / "train" / "losses.py"))


@cache
def tensors(case: str) -> dict[str, Tensor]:
    return load_file(FIXTURES / "golden" / case / "golden.safetensors")


@cache
def target(case: str) -> Target:
    return load_target(FIXTURES / "golden" / case / "target", torch.float32)


@pytest.fixture(
    scope="module", params=[(case, layout) for case in CASES for layout in ("target", "drafter")], ids="/".join
)
def recording(request: pytest.FixtureRequest) -> tuple[Target, FeatureRecurrence, dict[str, Tensor]]:
    case, layout = request.param
    drafter = load_drafter(FIXTURES / "golden" / case / layout, target(case), gamma=3 if layout == "target" else None)
    assert isinstance(drafter, FeatureRecurrence)
    return target(case), drafter, tensors(case)


Recording = tuple[Target, FeatureRecurrence, dict[str, Tensor]]


def official(drafter: FeatureRecurrence, g: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The training forward: each step attends to the rows of that step alone, at positions 0, 1, ... every time."""
    net, hidden, out = drafter.network, g["target.hs.4"][0], []
    count = g["step0.logits"].shape[1]
    causal = torch.ones(count, count, dtype=torch.bool).tril()
    for step in range(3):
        tokens = g["ids"][0, 1 + step : 1 + step + count]
        hidden, _ = net.rows(tokens, hidden[:count], torch.arange(count), net.empty(), causal)
        out.append((hidden, net.logits(hidden)))
    return out


@pytest.mark.peer("qwen_mtp")
def test_every_step_of_the_recording(recording: Recording) -> None:
    """Kills a norm that is not zero-centred, hidden state before embedding, a full rotation, a gate of the wrong half,
    a router that does not normalise, a shared expert without its gate, an un-normed state that is fed back."""
    _, drafter, g = recording
    for step, (hidden, logits) in enumerate(official(drafter, g)):
        assert_close(logits, g[f"step{step}.logits"][0])
        assert_close(hidden, g[f"step{step}.out"][0])


@pytest.mark.peer("qwen_mtp")
def test_drafts_of_the_recording(recording: Recording) -> None:
    """Kills a tap before the final norm, unshifted tokens, a row that is not cached. Later rows are training's own."""
    judge, drafter, g = recording
    assert drafter.plan == Chain(3)
    for length in (5, 9, 13):
        ids = tuple(g["ids"][0, :length].tolist())
        drafter.start(ids[:-1], begin(judge, ids[:-1], drafter.taps))
        draft = Draft(drafter.network, drafter.cache, drafter.length, ids[-1], drafter.feature)
        assert_close(draft.first, g[f"draft.{length}.logits"][0])
        assert int(draft.first.argmax()) == int(g[f"draft.{length}.tokens"][0])


@pytest.mark.peer("qwen_mtp")
def test_traces_of_the_recording(recording: Recording) -> None:
    """Kills features of rejected rows that stay: the first draft of every round, after the recorded prefix."""
    judge, drafter, g = recording
    g = {name.removeprefix("trace.1."): x for name, x in g.items() if name.startswith("trace.1.")}
    ids, prompt = g["ids"][0].tolist(), tuple(g["prompt"][0].tolist())
    first = {n: x for n, x in zip(g["prefix_len"].tolist(), g["drafts"][:, 0].tolist(), strict=True) if x >= 0}
    session, seen = Session(judge, drafter, leviathan, GREEDY, len(ids) - len(prompt)), 0
    session.begin(prompt, COINS)
    while not session.done:
        length = len(session.prompt + session.out)
        session.play(COINS)
        if length in first:
            seen += 1
            assert nodes(session.rounds[-1].block)[0][0] == first[length]
    assert list(prompt + session.out) == ids
    assert seen >= 4


@pytest.mark.peer("qwen_mtp")
def test_the_loss_of_the_recording(recording: Recording) -> None:
    """Kills a target token off by one, a mean over steps instead of a sum."""
    _, drafter, g = recording
    rows = [logits for _, logits in official(drafter, g)]
    words = [g["ids"][0, 2 + step : 2 + step + len(rows[0])] for step in range(3)]
    assert abs(float(LOSSES["fastmtp"](rows, words, [1.0] * 3)) - float(g["loss"])) < 1e-5 * float(g["loss"])


def test_step_weights() -> None:
    """Kills weights that are not normalised, and powers that start at one: 25/49, 15/49, 9/49 by hand."""
    assert LOSSES["fastmtp_weights"](3) == pytest.approx([25 / 49, 15 / 49, 9 / 49], abs=1e-15)
    assert [round(w, 2) for w in LOSSES["fastmtp_weights"](3)] == [0.51, 0.31, 0.18]
    assert LOSSES["fastmtp_weights"](4, beta=1.0) == [0.25] * 4
    rows = [torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 1.0]])]
    by_hand = 0.75 * (1 + torch.tensor(-2.0).exp()).log() + 0.25 * torch.tensor(2.0).log()
    assert float(LOSSES["fastmtp"](rows, [torch.tensor([1]), torch.tensor([0])], [0.75, 0.25])) == pytest.approx(
        float(by_hand), abs=1e-6
    )


def test_output_is_plain_decoding_whatever_the_depth() -> None:
    """Kills a recursion that leaves rows behind: depth 1 and depth 5, on a target with recurrent layers."""
    case = "sp_mtp_qwen35moe_A"
    g = tensors(case)
    for depth in (1, 5):
        drafter = load_drafter(FIXTURES / "golden" / case / "target", target(case), gamma=depth)
        prompt, ids = tuple(g["trace.1.prompt"][0].tolist()), g["trace.1.ids"][0].tolist()
        found = generate(target(case), drafter, leviathan, GREEDY, prompt, len(ids) - len(prompt), COINS)
        assert list(prompt + found.tokens) == ids
        assert {played.block.tokens.shape[1] for played in found.rounds} == {depth}
