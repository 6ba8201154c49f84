"""DFlash in the layouts of z-lab, transformers and speculators against recordings of their code, and a live peer."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, MuseGlimmerAssistantConfig, MuseGlimmerAssistantModel
from transformers.generation import DFlashTokenCandidateGenerator

from properties.helpers.close import assert_close
from properties.helpers.coins import COINS
from refengine.decoder import Stop, load_drafter, load_target
from refengine.decoder.drafters.dflash import DFlash
from refengine.decoder.loop import Session, begin, generate, nodes
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.coins import Site
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.engine.rules.point_mass import point_mass
from refengine.exact.chance import DEPTHS
from refengine.source_tree import GOLDEN

GREEDY = pipeline(greedy())
ZLAB = "dflash_zlab_A"


@cache
def parts(case: str) -> tuple[TransformersTarget, DFlash, dict[str, Tensor]]:
    target = load_target(GOLDEN / ("target_q3A" if case == ZLAB else f"{case}/target"), torch.float32)
    assert isinstance(target, TransformersTarget)
    drafter = load_drafter(GOLDEN / case / "drafter", target)
    assert isinstance(drafter, DFlash)
    return target, drafter, load_file(GOLDEN / case / "golden.safetensors")


def facts() -> dict[str, Any]:
    held: dict[str, Any] = json.loads((GOLDEN / ZLAB / "golden.json").read_text())
    return held


def after(case: str, ids: tuple[int, ...]) -> Tensor:
    """The drafter's rows after a prefix, its caches made from scratch."""
    target, drafter, _ = parts(case)
    drafter.start((), begin(target, ids[:-1], drafter.taps))
    return drafter.rows(ids[-1], len(ids) - 1)


# --- z-lab -----------------------------------------------------------------------------------------------------------


@pytest.mark.peer("dflash_drawn")
@pytest.mark.peer("dflash")
def test_zlab_every_round_of_a_greedy_run() -> None:
    """Kills a tap off by one, a shifted block, borrowed embeddings of the wrong rows, a block row that is cached."""
    target, drafter, t = parts(ZLAB)
    session = Session(target, drafter, point_mass, GREEDY, 60)  # the official loop plays on past its limit
    session.begin(tuple(t["prompt_ids"].tolist()), COINS)
    for i in range(len(facts()["greedy"]["rounds"])):
        golden = {k.split(".", 2)[2]: v for k, v in t.items() if k.startswith(f"greedy.r{i:02d}.")}
        prefix = session.prompt + session.out
        assert_close(drafter.backbone.block(prefix[-1], len(prefix) - 1), golden["block_hidden"])
        assert_close(drafter.rows(prefix[-1], len(prefix) - 1), golden["draft_logits"])
        session.play(COINS)
        assert nodes(session.rounds[-1].block)[0] == tuple(golden["draft_tokens"].tolist())
        emitted = session.rounds[-1].emitted
        assert emitted == tuple(golden["committed_tokens"].tolist())[: len(emitted)]


@pytest.mark.peer("dflash")
def test_zlab_outputs() -> None:
    """Kills an output that runs past a stop token inside a block, past the limit, or off the plain greedy path."""
    target, drafter, t = parts(ZLAB)
    prompt = tuple(t["prompt_ids"].tolist())
    runs = [(facts()["greedy"], 36, Stop()), (facts()["greedy_max_new_13"], 13, Stop())]
    runs += [(run, 36, Stop(frozenset(run["stop_token_ids"]))) for run in facts()["stop_runs"]]
    for run, limit, stop in runs:
        result = generate(target, drafter, point_mass, GREEDY, prompt, limit, COINS, stop)
        assert list(result.tokens) == run["new_tokens"]
    for run in facts()["other_prompts"]:
        result = generate(target, drafter, point_mass, GREEDY, run["prompt_ids"], 36, COINS)
        assert list(result.tokens) == run["new_tokens"]
        ours = [list(nodes(played.block)[0]) for played in result.rounds]
        assert ours == run["draft_tokens"][: len(ours)]


@dataclass
class Sampled:
    """z-lab's rule by its draws: a draft is kept where the target's own draw at its place is the same token."""

    posterior: list[int]
    drafts: list[int]

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        place = int(site[1]) % DEPTHS
        return torch.tensor([self.posterior[place] == self.drafts[place]])

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        kept = [a == b for a, b in zip(self.posterior, self.drafts, strict=False)]
        token = self.posterior[kept.index(False) if False in kept else len(kept)]
        assert float(weights[0, token]) > 0
        return torch.tensor([token])


@pytest.mark.peer("dflash")
@pytest.mark.parametrize("run", [0, 1])
def test_zlab_sampling_run(run: int) -> None:
    """Kills drafts that are drawn where the release takes the likeliest, and a p at the wrong place."""
    target, drafter, t = parts(ZLAB)
    sampling = facts()["sampling"][run]
    session = Session(target, drafter, point_mass, pipeline(temperature(sampling["temperature"])), 60)
    session.begin(tuple(t["prompt_ids"].tolist()), Sampled([sampling["new_tokens"][0]], []))
    for i in range(len(sampling["rounds"])):
        golden = {k.split(".")[-1]: v for k, v in t.items() if k.startswith(f"{sampling['prefix']}.r{i:02d}.")}
        session.play(Sampled(golden["posterior_tokens"].tolist(), golden["draft_tokens"].tolist()))
        played = session.rounds[-1]
        assert nodes(played.block)[0] == tuple(golden["draft_tokens"].tolist())
        assert_close(played.p, golden["p"])  # softmax is 1-Lipschitz in the logits, so their bound holds here too
        assert played.verdict.tokens == tuple(golden["committed_tokens"].tolist())


# --- speculators -----------------------------------------------------------------------------------------------------


@pytest.mark.peer("dflash_speculators")
@pytest.mark.parametrize("case", ["sp_dflash_A", "sp_dflash_C"])
def test_speculators_rows_and_drafts(case: str) -> None:
    """Kills taps read as layers, a window that moves along the block, a causal block where it is not, a lost anchor."""
    _, _, t = parts(case)
    ids = tuple(t["ids"][0].tolist())
    for length in (5, 9, 14):
        assert_close(after(case, ids[:length]), t[f"draft.{length}.logits"])
    for trace in range(3):
        ids = tuple(t[f"trace.{trace}.ids"][0].tolist())
        rounds = zip(t[f"trace.{trace}.prefix_len"].tolist(), t[f"trace.{trace}.drafts"].tolist(), strict=True)
        for length, drafts in rounds:
            wanted = [x for x in drafts if x >= 0]  # less is drafted where less is left to emit
            assert after(case, ids[:length]).argmax(-1).tolist()[: len(wanted)] == wanted


# --- transformers ----------------------------------------------------------------------------------------------------


@pytest.mark.peer("dflash_transformers")
def test_transformers_rows_drafts_and_accepted_counts() -> None:
    """Kills tensors of the encoder under the wrong name, and a rule or a rollback that differs from generate's."""
    target, drafter, t = parts("hf_dflash_A")
    for trace in range(4):
        g = {k.removeprefix(f"trace.{trace}."): v for k, v in t.items() if k.startswith(f"trace.{trace}.")}
        session = Session(target, drafter, leviathan, GREEDY, 10**6)
        session.begin(tuple(g["prompt"][0].tolist()), COINS)
        rounds = list(zip(g["prefix_len"].tolist(), g["drafts"].tolist(), g["accepted"].tolist(), strict=True))
        rows = iter(g["draft_logits"])
        for i, (length, drafts, accepted) in enumerate(rounds[1:], 1):  # the first runs the prompt and drafts nothing
            assert session.prompt + session.out == tuple(g["ids"][0, :length].tolist())
            wanted = [x for x in drafts if x >= 0]
            if not wanted:
                break  # nothing is left to draft for
            ours = drafter.rows((session.prompt + session.out)[-1], length - 1)
            assert_close(ours, next(rows))
            session.play(COINS)
            assert list(nodes(session.rounds[-1].block)[0]) == wanted
            if i < len(rounds) - 1:  # the last count is cut at the limit
                assert len(session.rounds[-1].verdict.path) == accepted


@pytest.mark.peer("dflash_transformers")
@pytest.mark.parametrize(
    ("window", "layers", "rope"),
    [
        (2, ["sliding_attention", "full_attention"], {"rope_type": "default"}),
        (5, ["sliding_attention"] * 2, {"rope_type": "default"}),
        (3, ["full_attention", "sliding_attention"],
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}),
    ],
)  # fmt: skip
def test_transformers_live_with_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, layers: list[str], rope: dict[str, Any]
) -> None:
    """Kills a window measured from the anchor, one row more or less of it, and a tap of the last layer before its norm:
    the recording has no sliding layer."""
    torch.manual_seed(window)
    sizes = {
        "hidden_size": 24,
        "intermediate_size": 32,
        "head_dim": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    judge = LlamaForCausalLM(
        LlamaConfig(vocab_size=40, num_hidden_layers=3, initializer_range=0.3, eos_token_id=None, **sizes)
    ).eval()
    assistant = MuseGlimmerAssistantModel(
        MuseGlimmerAssistantConfig(
            **sizes, num_hidden_layers=2, sliding_window=window, layer_types=layers, block_size=5, mask_token_id=39,
            target_layer_ids=[0, 2], rope_parameters=rope | {"rope_theta": 1e4}, max_position_embeddings=128,
        )
    ).eval()  # fmt: skip
    for parameter in assistant.parameters():
        parameter.data = 0.25 * torch.randn_like(parameter) + float(parameter.dim() == 1)
    seen: list[tuple[tuple[int, ...], Tensor]] = []
    original = DFlashTokenCandidateGenerator.get_candidates

    def recording(self: Any, input_ids: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = original(self, input_ids, *args, **kwargs)
        seen.extend([(tuple(input_ids[0].tolist()), found[1][0].clone())] if found[1] is not None else [])
        return found

    monkeypatch.setattr(DFlashTokenCandidateGenerator, "get_candidates", recording)
    prompt = torch.arange(11)[None]
    judge.generate(prompt, assistant_model=assistant, speculation_type="dflash", max_new_tokens=14, do_sample=False)
    judge.save_pretrained(tmp_path / "target")
    assistant.save_pretrained(tmp_path / "drafter")
    target = load_target(tmp_path / "target", torch.float32)
    drafter = load_drafter(tmp_path / "drafter", target)
    assert len(seen) > 5
    for ids, logits in seen:
        drafter.start((), begin(target, ids[:-1], drafter.taps))
        assert_close(drafter.rows(ids[-1], len(ids) - 1), logits)
