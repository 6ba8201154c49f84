"""Small drafters trained over seeds: what they run is what drafts, and a finding turns with what it is about."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.training import afterwards, blocks, heads, joint, lookups, recurrences, rollouts, tuning, world
from benchmarks.training.rollouts import DEPTHS, EAGLE3, Branches, gumbel, overlaps, rollout, start_eagle3
from benchmarks.training.world import BEGINNING, SEEDS, VOCABULARY, Llama, Read, World, seeded, target_shape
from fixtures.train import losses
from properties.helpers.close import assert_close
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.networks.cache import causal
from refengine.decoder.networks.feature_recurrence import Draft
from refengine.decoder.rows import point_block
from refengine.engine.block import ROOT
from refengine.selfcheck.claims.claims import load
from refengine.selfcheck.effects import over_seeds
from refengine.selfcheck.effects.trained_variants import EFFECTS, FUSED_TAPS

SEED = 3


@pytest.fixture(scope="module")
def untrained() -> World:
    """Targets as they start."""
    return World(seeded(target_shape(), "target"))


@pytest.fixture(scope="module")
def one(untrained: World) -> tuple[dict[str, Tensor], Read, Tensor]:
    """One seed's target, its pass over one text, and the text; in float64."""
    target = {f"target.{name}": x[SEED].double() for name, x in untrained.target.items()}
    words = untrained.write(2, 5)[SEED, 1]
    return target, Llama(target, "target.")(words), words


# --- what is trained is what drafts ----------------------------------------------------------------------------------


@torch.no_grad()
def test_a_roll_out_is_the_rows_of_a_draft(untrained: World, one: Any) -> None:
    """Kills a mask, a position, a shift or a feature of training that drafting does not have."""
    _, read, words = one
    net = Eagle3(EAGLE3, {name: x[SEED].double() for name, x in start_eagle3(untrained).items()})
    steps, features = rollout(net, read, words), net.fused(torch.cat([read.states[j] for j in net.taps], -1))
    for place in (0, 5, 11):
        sees = causal(place, 0, words.device)
        _, cache = net.rows(words[1 : place + 1], features[:place], torch.arange(place), net.empty(), sees)
        draft = Draft(net, cache, place, int(words[place + 1]), features[place : place + 1])
        assert_close(steps[0].logits[place], draft.first)
        for depth in range(1, DEPTHS):
            grown = draft.grow((int(words[place + 1 + depth]),), (depth - 1,))
            assert_close(steps[depth].logits[place], grown[0])
            assert torch.equal(steps[depth].p[place], read.logits[place + 1 + depth])


@torch.no_grad()
def test_a_branch_is_the_targets_row_after_the_drafts_own_tokens(one: Any) -> None:
    """Kills labels of the text after tokens that are not the text's, and a branch that sees another."""
    target, read, words = one
    count = len(words) - DEPTHS - 1
    branches, drawn = Branches(target, read, gumbel(4).double()), list[Tensor]()
    for _ in range(2):
        tokens, logits = branches.follow(torch.zeros(count, VOCABULARY))
        drawn.append(tokens)
        for place in (0, 7, count - 1):
            text = torch.cat((words[: place + 2], torch.stack([x[place] for x in drawn])))
            assert_close(logits[place], Llama(target, "target.")(text).logits[-1])
    assert len(set(drawn[0].tolist())) > 1


def test_tokens_per_pass_are_those_of_leviathan() -> None:
    """Kills a ratio upside down, and one of another word: over all words that p draws, min(1, q / p) is min(p, q)."""
    places = BEGINNING + 1
    p = torch.zeros(1, VOCABULARY, 1, places, VOCABULARY, dtype=torch.float64)
    q = torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(1), dtype=torch.float64).expand(p.shape)
    words = torch.zeros(1, VOCABULARY, BEGINNING + 3, dtype=torch.long)
    words[0, :, BEGINNING + 2] = torch.arange(VOCABULARY)
    found = overlaps(p, q, words)
    assert found["tau"][0] == pytest.approx(1 + found["overlap 1"][0])
    assert found["overlap 1"][0] < 0.95
    assert overlaps(p, p, words)["tau"] == [pytest.approx(2.0)]


def test_what_is_accepted_is_the_longest_path() -> None:
    """Kills a walk that leaves the tree, and one that takes a child of another parent."""
    block = point_block((4, 5, 6, 5), (ROOT, ROOT, 0, 2), torch.device("cpu"))
    texts = {(4, 6, 5, 1): 3, (5, 6): 0 + 1, (4, 5): 1, (6,): 0, (4, 6, 5): 3}
    assert {text: lookups.followed(block, text) for text in texts} == texts


def test_clusters_are_of_equal_size_and_of_rows_that_are_alike() -> None:
    """Kills an ordering that is no permutation, and one that does not look at the rows."""
    order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(2))
    rows = torch.zeros(VOCABULARY, 4)
    rows[order] = torch.randn(heads.CENTROIDS, 1, 4).expand(-1, VOCABULARY // heads.CENTROIDS, -1).flatten(0, 1)
    found = heads.clusters(rows).view(heads.CENTROIDS, -1)
    assert sorted(found.flatten().tolist()) == list(range(VOCABULARY))
    assert {frozenset(x) for x in found.tolist()} == {frozenset(x) for x in order.view(heads.CENTROIDS, -1).tolist()}


# --- findings --------------------------------------------------------------------------------------------------------


def committed(monkeypatch: pytest.MonkeyPatch, folder: Path, values: dict[str, Any]) -> None:
    """In the place of the record: these values of runs."""
    record = replace(over_seeds.RECORD, file=folder / "training.json", digest=lambda run: "now")
    monkeypatch.setattr(over_seeds, "RECORD", record)
    record.write({run: {"digest": "now", "values": held} for run, held in values.items()})


SHOWN = [
    name for name, effect in EFFECTS.items() if effect.run != FUSED_TAPS and not over_seeds.RECORD.stale(effect.run)
]


@pytest.mark.parametrize("name", SHOWN)
def test_variants_that_change_places_turn_the_finding(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kills a claim that holds, or fails, either way round, and one that holds where nothing differs."""
    run, differences = EFFECTS[name].run, EFFECTS[name].differences
    (before,) = over_seeds.effect(name)
    values = json.loads(over_seeds.RECORD.file.read_text())[run]["values"]
    judged = tuple(replace(x, more=x.less, less=x.more) for x in differences if x.judged)
    monkeypatch.setitem(EFFECTS, name, replace(EFFECTS[name], differences=judged))
    (after,) = over_seeds.effect(name)
    if before.verdict == "consistent":
        assert after.verdict == "violated"
    elif before.verdict == "violated" and len(judged) == 1:
        assert after.verdict == "consistent"
    else:  # of several, some hold and some do not: turned, others do not
        assert after.verdict != "consistent"
    same = {variant: {measure: [1.0 + i for i in range(SEEDS)] for measure in held} for variant, held in values.items()}
    committed(monkeypatch, tmp_path, {run: same})
    assert over_seeds.effect(name)[0].verdict == "not tested"


VERDICTS = {  # what the committed runs say
    "eagle1-inputs": "consistent",
    "features-or-tokens": "violated",
    "training-time-test": "consistent",
    "step-weights": "not tested",
    "own-steps": "consistent",
    "fine-tuning": "consistent",
    "draft-attention": "consistent",
    "medusa-heads": "consistent",
    "medusa-own-outputs": "not tested",
    "eagle-own-outputs": "not tested",
    "warm-centroids": "consistent",
    "dspark-heads": "consistent",
    "dynamic-trees": "consistent",
    "dynamic-trees-20-50": "not tested",
    "lookups": "consistent",
    "domains": "consistent",
    "deepseek-loss": "not tested",
    "joint-training": "not tested",
    "modest-lambda": "consistent",
    "sequential-heads": "consistent",
    "more-texts": "consistent",
    "feature-plateau": "not tested",
    "small-drafts": "not tested",
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_claim_comes_out_as_committed(name: str) -> None:
    """Kills an effect that comes or goes unseen, and one that is not shown for want of a run."""
    (finding,) = over_seeds.effect(name)
    assert finding.verdict == VERDICTS[name]
    assert finding.numbers["seeds"] == SEEDS >= 8


def test_a_claim_says_what_its_run_says() -> None:
    """Kills a claim that names a run of another verdict, a case that there is not, and words that are not the run's."""
    named = [
        (claim, name.partition("::test_a_claim_comes_out_as_committed")[2])
        for claim in load()
        for name in claim.tests()
    ]
    cases = [(claim, case) for claim, case in named if case]
    assert len(cases) > 20
    assert [(claim.id, case) for claim, case in cases if claim.verdict != VERDICTS[case.strip("[]")]] == []
    ours = [claim for claim in load() if claim.id.startswith("training.")]
    told = {name: effect.claim for name, effect in EFFECTS.items() if effect.run != FUSED_TAPS}
    assert {claim.id.partition(".")[2].replace("_", "-"): claim.statement for claim in ours} == told
    assert {claim.id.partition(".")[2].replace("_", "-"): claim.verdict for claim in ours} == VERDICTS


IDLE = {  # runs whose variants start alike
    "heads.medusa_heads": heads.medusa_heads,
    "heads.own_outputs": heads.own_outputs,
    "recurrences.step_weights": recurrences.step_weights,
    "recurrences.training_time_test": recurrences.training_time_test,
    "blocks.dspark_heads": blocks.dspark_heads,
    "recurrences.domains": recurrences.domains,
    "tuning.fine_tuning": tuning.fine_tuning,
    "afterwards.modules": afterwards.modules,
}


@pytest.mark.parametrize("run", IDLE)
def test_training_that_does_nothing_shows_nothing(
    run: str, untrained: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kills an effect of the measurement: variants that were trained on nothing are told apart."""
    for module in (rollouts, blocks, joint, afterwards):
        monkeypatch.setattr(module, "learn", lambda *_, **__: None)
    monkeypatch.setattr(world, "MEASURED", 2)
    monkeypatch.setattr(world, "CORPUS", 2)
    monkeypatch.setattr(blocks, "CORPUS", 2)
    committed(monkeypatch, tmp_path, {run: IDLE[run](untrained)})
    verdicts = [over_seeds.effect(name)[0].verdict for name, effect in EFFECTS.items() if effect.run == run]
    assert verdicts
    assert "consistent" not in verdicts


def test_another_script_is_not_this_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a result that outlives what it was computed from."""
    stale = replace(over_seeds.RECORD, digest=lambda run: "another script")
    monkeypatch.setattr(over_seeds, "RECORD", stale)
    (finding,) = over_seeds.effect("medusa-heads")
    assert finding.verdict == "not tested"
    assert stale.command in finding.reason


def test_every_loss_has_a_user() -> None:
    """Kills a published loss that only its tests know."""
    makers = [*over_seeds.FIXTURES.glob("*.py"), *over_seeds.SCRIPTS.glob("*.py")]
    texts = "\n".join(file.read_text("utf-8") for file in makers)
    published = [x.__name__ for x in vars(losses).values() if getattr(x, "__module__", "") == losses.__name__]
    public = [name for name in published if not name.startswith("_")]
    assert len(public) >= 8
    assert [name for name in public if f"losses.{name}(" not in texts and f'LOSSES["{name}"]' not in texts] == []
