"""DSpark (Qwen3 and Gemma 4 layers) and DeepSpec's DFlash against recordings of the official code (golden/README)."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS, Recorded
from refengine.decoder import Stop, load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.loop import Session, generate, nodes
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.source_tree import GOLDEN

TARGETS = {
    "dspark_qwen3_A": "target_q3A",
    "dspark_qwen3_gated_A": "target_q3A",
    "dspark_qwen3_rnn_A": "target_q3A",
    "dflash_deepspec_qwen3_A": "target_q3A",
    "dspark_gemma4_A": "target_gemma4_deepspec",
}
pytestmark = [
    *(pytest.mark.peer("dspark", case=f"dspark_qwen3{kind}_A") for kind in ("", "_gated", "_rnn")),
    pytest.mark.peer("dspark_gemma4", case="dspark_gemma4_A"),
    pytest.mark.peer("dflash_deepspec", case="dflash_deepspec_qwen3_A"),
]


@dataclass
class Recording:
    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    target: TransformersTarget
    drafter: DSpark

    @property
    def prompt(self) -> tuple[int, ...]:
        return tuple(self.tensors["prompt_ids"].tolist())

    def rounds(self, prefix: str) -> range:
        return range(sum(name.startswith(prefix) and name.endswith("draft_tokens") for name in self.tensors))


@pytest.fixture(scope="module", params=TARGETS)
def recording(request: pytest.FixtureRequest) -> Recording:
    folder = GOLDEN / request.param
    target = load_target(GOLDEN / TARGETS[request.param], torch.float32)
    drafter = load_drafter(folder / "drafter", target)
    assert isinstance(drafter, DSpark)
    facts = json.loads((folder / "golden.json").read_text())
    return Recording(facts, load_file(folder / "golden.safetensors"), target, drafter)


def markov_row(drafter: DSpark, hidden: Tensor, previous: list[int]) -> tuple[Tensor, list[Tensor]]:
    """Teacher-forced Markov biases [B, V] and confidences of one block."""
    memory = hidden.new_zeros(drafter.shape.markov_rank)
    biases, confidences = [], []
    for slot, token in zip(hidden, previous, strict=True):
        before = drafter.before(token)
        bias, memory = drafter.markov(slot, before, memory)
        biases.append(bias)
        if drafter.shape.enable_confidence_head:
            confidences.append(drafter.confidence(slot, before))
    return torch.stack(biases), confidences


def test_every_tensor_of_a_greedy_run(recording: Recording) -> None:
    """Kills a tap off by one, a shifted block, a missing norm, a wrong RoPE position, a wrong Markov predecessor."""
    r = recording
    session = Session(
        r.target, r.drafter, leviathan, pipeline(greedy()), 60
    )  # the official loop plays on past its limit
    session.begin(r.prompt, COINS)
    for i in r.rounds("greedy.r"):
        prefix = session.prompt + session.out
        golden = {k.split(".", 2)[2]: v for k, v in r.tensors.items() if k.startswith(f"greedy.r{i:02d}.")}
        if "block_hidden" in golden:  # of later rounds the recordings keep the tokens alone
            hidden = r.drafter.block(prefix[-1], len(prefix) - 1)
            assert_close(hidden, golden["block_hidden"])
            base = r.drafter.logits(hidden)
            assert_close(base, golden["base_logits"])
            previous = [prefix[-1], *golden["draft_tokens"].tolist()[:-1]]
            biases, confidences = markov_row(r.drafter, hidden, previous)
            assert_close(base + biases, golden["draft_logits"])
            if confidences:
                assert_close(torch.stack(confidences), golden["confidence"])
        session.play(COINS)
        assert nodes(session.rounds[-1].block)[0] == tuple(golden["draft_tokens"].tolist())
        assert (
            session.rounds[-1].emitted == tuple(golden["committed_tokens"].tolist())[: len(session.rounds[-1].emitted)]
        )


def test_teacher_forced_rows(recording: Recording) -> None:
    """Kills a Markov head that reads the wrong embedding or forgets its recurrent state between slots."""
    r = recording
    if not (rounds := r.rounds("teacher.r") or [i for i in range(99) if f"teacher.r{i:02d}.logits" in r.tensors]):
        assert r.drafter.shape.markov_rank == 0  # DFlash has no head to teach
        return
    for i in rounds:
        hidden, base = r.tensors[f"greedy.r{i:02d}.block_hidden"], r.tensors[f"greedy.r{i:02d}.base_logits"]
        for lane, previous in enumerate(r.tensors[f"teacher.r{i:02d}.prev_token_ids"].tolist()):
            biases, confidences = markov_row(r.drafter, hidden, previous)
            assert_close(base + biases, r.tensors[f"teacher.r{i:02d}.logits"][lane])
            theirs = r.tensors[f"teacher.r{i:02d}.confidence_logits"][lane].sigmoid()
            assert_close(torch.stack(confidences), theirs)


def test_greedy_outputs(recording: Recording) -> None:
    """Kills an output that runs past a stop token inside a block, past the limit, or off the plain greedy path."""
    r = recording
    runs = [(r.facts["greedy"], 36, Stop()), (r.facts["greedy_max_new_13"], 13, Stop())]
    runs += [(run, 36, Stop(frozenset(run["stop_token_ids"]))) for run in r.facts["stop_runs"]]
    for facts, limit, stop in runs:
        result = generate(r.target, r.drafter, leviathan, pipeline(greedy()), r.prompt, limit, COINS, stop)
        assert list(result.tokens) == facts["new_tokens"]
    for facts in r.facts["other_prompts"]:
        prompt = facts.get("prompt_ids") or facts["output_ids"][: facts["prompt_len"]]
        result = generate(r.target, r.drafter, leviathan, pipeline(greedy()), prompt, 36, COINS)
        assert list(result.tokens) == facts["new_tokens"]


def test_confidence_truncation(recording: Recording) -> None:
    """Kills a threshold that keeps the position below it, or that looks at the wrong confidence."""
    r = recording
    for facts in r.facts.get("threshold_runs", []):
        cut = DSpark(r.drafter.shape, dict(r.drafter.w.tensors), facts["confidence_threshold"])
        result = generate(r.target, cut, leviathan, pipeline(greedy()), r.prompt, 36, COINS)
        assert list(result.tokens) == facts["new_tokens"]
        drafted = [played.block.tokens.shape[1] for played in result.rounds]
        assert drafted == facts["n_draft"][: len(drafted)]  # the official loop plays on past its limit


@pytest.mark.parametrize("heat", [1.0, 0.7])
def test_sampling_run(recording: Recording, heat: float) -> None:
    """Kills a q that is not the row the draft came from, a p at the wrong place, and a different accept decision."""
    r = recording
    prefix = f"sample_T{heat}"
    facts = next(run for run in r.facts["sampling"] if run["temperature"] == heat)
    session = Session(r.target, r.drafter, leviathan, pipeline(temperature(heat)), 60)
    session.begin(r.prompt, Recorded([], [], facts["new_tokens"][0]))
    for i in r.rounds(f"{prefix}.r"):
        golden = {k.split(".")[-1]: v for k, v in r.tensors.items() if k.startswith(f"{prefix}.r{i:02d}.")}
        tokens = golden["committed_tokens"].tolist()
        session.play(Recorded(golden["draft_tokens"].tolist(), golden["uniforms"].tolist(), tokens[-1]))
        played = session.rounds[-1]
        assert played.block.q is not None
        if "q" not in golden:
            continue
        # Probabilities: softmax is 1-Lipschitz in the logits, so the bound on logits bounds them too.
        assert_close(played.block.q[0], golden["q"])
        assert_close(played.p, golden["p"])
        assert played.verdict.tokens == tuple(tokens)
