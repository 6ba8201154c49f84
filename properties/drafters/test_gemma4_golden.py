"""The Gemma 4 assistant against recordings of transformers 5.20: the target's keys, steps, the head, whole runs."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.gemma4_assistant import SLIDING, Backbone, Gemma4Assistant, Step
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.protocols import Target
from refengine.engine.policy import greedy, pipeline
from refengine.engine.rules.leviathan import leviathan
from refengine.source_tree import GOLDEN

pytestmark = [pytest.mark.peer("gemma4_assistant")]

CASES = ("ord", "plain")  # the centroid head and the plain one
ROUNDS = ("trace.0.round2", "trace.1.round1", "trace.1.round3")  # before the window is full and after, with stale keys
GREEDY = pipeline(greedy())
DRAFTS = 4


@pytest.fixture(scope="module", params=CASES)
def recording(request: pytest.FixtureRequest) -> tuple[Path, Target, dict[str, Tensor]]:
    folder = GOLDEN / f"hf_gemma4_{request.param}_A"
    target = load_target(GOLDEN / f"target_gemma4_{request.param}", torch.float32)
    return folder / "drafter", target, load_file(folder / "golden.safetensors")


def test_the_targets_logits_and_the_keys_that_it_shares(recording: tuple[Path, Target, dict[str, Tensor]]) -> None:
    """Kills keys of the wrong layer (any but the last of its type that computes its own), and a wrong window."""
    folder, target, golden = recording
    assistant = load_drafter(folder, target)
    passed = begin(target, tuple(golden["ids"][0].tolist()), ())
    assert_close(passed.logits, golden["target.logits"][0])
    for kind, layer in assistant.backbone.stores.items():
        for name, found in zip("kv", target.kv(layer), strict=True):
            assert_close(found, golden[f"target.shared_kv.{kind}.{name}"][0])


@pytest.mark.parametrize("round_", ROUNDS)
def test_every_step_of_a_round(recording: tuple[Path, Target, dict[str, Tensor]], round_: str) -> None:
    """Kills a moving position, a mask of W keys, a scale of the scores, a gate that is no tanh-GELU, a stale state."""
    folder, target, golden = recording
    assistant = load_drafter(folder, target)
    g = {name.removeprefix(f"{round_}."): x for name, x in golden.items() if name.startswith(f"{round_}.")}
    keys: Any = {
        kind: tuple(g[f"kv.{kind}.{name}"][0].transpose(0, 1) for name in "kv") for kind in assistant.shape.heads
    }
    mask = g[f"mask.{SLIDING}"][0, 0] >= 0
    assert int(mask.sum()) == min(mask.shape[1], assistant.shape.sliding_window + 1)
    sees = {kind: mask if kind == SLIDING else torch.ones(1, len(keys[kind][0])).bool() for kind in keys}
    state = g["step0.inputs_embeds"][0].split(target.width, -1)[1]
    for s in range(DRAFTS):
        embedded, before = g[f"step{s}.inputs_embeds"][0].split(target.width, -1)
        assert_close(state, before)
        assert torch.equal(g[f"step{s}.position_ids"], g["step0.position_ids"])
        there = assistant.backbone
        assistant.backbone = Backbone(target, there.stores, lambda tokens, x=embedded: x)  # type: ignore[misc]
        step = assistant.step(torch.tensor([0]), state, g[f"step{s}.position_ids"][0], keys, sees)
        assistant.backbone = there
        for found, name in ((step.features, "norm"), (step.logits, "logits"), (step.hidden, "next_state")):
            assert_close(found, g[f"step{s}.{name}"][0])
        state = step.hidden


def test_the_centroid_head_alone() -> None:
    """Kills tokens that are filed under another centroid, and a fill that is not the least scored logit minus one."""
    target = load_target(GOLDEN / "target_gemma4_ord", torch.float32)
    assistant = load_drafter(GOLDEN / "hf_gemma4_ord_A" / "drafter", target)
    golden = load_file(GOLDEN / "hf_gemma4_ord_A" / "golden.safetensors")
    x = golden["masked.in"][0]
    assert_close(assistant.w.linear("masked_embedding.centroids", x), golden["masked.centroid_logits"][0])
    assert_close(assistant.head(x)[0], golden["masked.out_joint"][0])
    for i in range(len(x)):
        logits, scored = assistant.head(x[i : i + 1])
        assert_close(logits, golden[f"masked.out.{i}"][0])
        assert int(scored.sum()) == 6 * 96 // 16  # six of sixteen centroids, six tokens each
        assert torch.equal(scored, logits > logits.min())  # the fill is below every scored logit


def traces(golden: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    return [
        {name.removeprefix(f"trace.{i}."): x for name, x in golden.items() if name.startswith(f"trace.{i}.")}
        for i in range(4)
    ]


def watched(assistant: Gemma4Assistant) -> list[Step]:
    """Every step that it will take, as they come."""
    steps: list[Step] = []
    original = assistant.step

    def step(*arguments: Any) -> Step:
        steps.append(original(*arguments))
        return steps[-1]

    assistant.step = step  # type: ignore[method-assign]
    return steps


def test_whole_runs_with_the_keys_of_rejected_drafts(recording: tuple[Path, Target, dict[str, Tensor]]) -> None:
    """Every draft and every logit of every round. Kills a wrong account of which stale keys the release can see."""
    folder, target, golden = recording
    assistant = load_drafter(folder, target, gamma=DRAFTS, stale_keys=True)
    steps, compared = watched(assistant), 0
    for t in traces(golden):
        session = Session(target, assistant, leviathan, GREEDY, 10**6)
        session.begin(tuple(t["prompt"][0].tolist()), COINS)
        for r, length in enumerate(t["prefix_len"].tolist()):
            wanted = [x for x in t["drafts"][r].tolist() if x >= 0]
            assert session.prompt + session.out == tuple(t["ids"][0, :length].tolist())
            if not wanted:
                break  # the recording drafts less where less is left to emit, and then nothing
            steps.clear()
            assistant.gamma = len(wanted)
            session.play(COINS)
            assert list(nodes(session.rounds[-1].block)[0]) == wanted
            assert_close(torch.cat([step.logits for step in steps]), t["draft_logits"][r, : len(wanted)])
            compared += 1
    assert compared > 40


def test_without_stale_keys_a_round_is_the_released_one_where_nothing_was_rejected(
    recording: tuple[Path, Target, dict[str, Tensor]],
) -> None:
    """Kills a reference that differs from the release in more than the stale keys, or in nothing."""
    folder, target, golden = recording
    assistant = load_drafter(folder, target, gamma=DRAFTS)
    steps, equal, different = watched(assistant), 0, 0
    for t in traces(golden):
        session = Session(target, assistant, leviathan, GREEDY, 10**6)
        prompt, rejected = tuple(t["prompt"][0].tolist()), False
        session.begin(prompt, COINS)
        for r, length in enumerate(t["prefix_len"].tolist()):
            steps.clear()
            session.rebuild(prompt, tuple(t["ids"][0, len(prompt) : length].tolist()))
            session.play(COINS)
            if rejected:
                different += not torch.allclose(steps[0].logits, t["draft_logits"][r, :1], atol=1e-3)
            else:
                equal += 1
                count = int((t["drafts"][r] >= 0).sum())
                assert_close(torch.cat([step.logits for step in steps])[:count], t["draft_logits"][r, :count])
            rejected = int(t["accepted"][r]) < int((t["drafts"][r] >= 0).sum())
    assert equal >= 4  # the first round of each run, and those after a full acceptance
    assert different > 10
