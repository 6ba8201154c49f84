"""The effects in miniature: what was committed shows them, and a claim that does not show is violated."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.protocols import Turn
from refengine.decoder.rows import point_block
from refengine.engine.block import Block
from refengine.selfcheck.drafters.table import ROWS
from refengine.selfcheck.effects import over_seeds, overlap, training
from refengine.selfcheck.effects.trained_variants import EFFECTS, FUSED_TAPS
from refengine.source_tree import FIXTURES

START = runpy.run_path(str(FIXTURES / "untrained.py"))["start"]


def test_every_effect_is_as_committed() -> None:
    """Kills a variant that is read as another, and an effect that comes or goes unseen."""
    verdicts = {finding.id: finding.verdict for finding in overlap.effects()}
    trained = {f"effects/{name}" for name in EFFECTS}
    assert trained < verdicts.keys()
    own = verdicts.keys() - trained
    assert {verdicts[name] for name in own} == {"consistent"}
    assert len(own) == 6


def test_variants_that_change_places_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that holds either way round."""
    told = overlap.EFFECTS["training"]
    turned = overlap.Effect(told.claim, told.source, told.worse, told.better, told.depth)
    monkeypatch.setitem(overlap.EFFECTS, "training", turned)
    assert overlap.effect("training")[0].verdict == "violated"


def test_fused_taps_are_judged_by_the_committed_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills a verdict that does not look at the seeds, smaller rivals, and a result of another script."""
    (finding,) = over_seeds.effect("fused-taps")
    assert finding.verdict == "consistent"
    held = json.loads(over_seeds.FUSED_RECORD.file.read_text())
    languages = held[FUSED_TAPS]["languages"]
    assert all(len({*run["parameters"].values()}) == 1 for runs in languages.values() for run in runs.values())
    runs = languages["one stream"].values()
    first = [run["overlap"]["fused"][0] - run["overlap"]["top"][0] for run in runs]
    assert finding.tables["differences"]["difference"][0].value == pytest.approx(sum(first) / len(first))
    for run in runs:
        run["overlap"]["fused"] = [x - 0.5 for x in run["overlap"]["fused"]]
    record = replace(over_seeds.FUSED_RECORD, file=tmp_path / "result.json")
    monkeypatch.setattr(over_seeds, "FUSED_RECORD", record)
    record.file.write_text(json.dumps(held))
    assert over_seeds.effect("fused-taps")[0].verdict == "violated"
    monkeypatch.setattr(over_seeds, "FUSED_RECORD", replace(record, digest=lambda key: "another script"))
    assert over_seeds.effect("fused-taps")[0].verdict == "not tested"


def test_an_interval_is_students() -> None:
    """Kills a normal interval, and one of the deviation: the t quantile of 2 degrees at 97.5 % is 4.30265."""
    assert over_seeds.interval([1.0, 2.0, 3.0]) == pytest.approx(
        (2.0, 2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), 1e-5
    )


# --- before and after training ---------------------------------------------------------------------------------------


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "ROWS", {name: ROWS[name] for name in ("medusa", "dflash", "ngram")})


@pytest.mark.usefixtures("two")
def test_training_shows_in_tokens_per_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a start that is the trained drafter, and a claim that holds whatever training does."""
    (finding,) = training.training()
    assert finding.verdict == "consistent"
    table = finding.tables["tokens per pass"]
    assert table["drafter"] == ["medusa", "dflash"]  # n-grams are not trained
    monkeypatch.setattr(training, "untrained", lambda name, target: ROWS[name].load(target))
    (idle,) = training.training()
    assert idle.verdict == "violated"
    assert idle.tables["tokens per pass"]["before"] == table["after"]


class Silent(PromptLookup):
    """Proposes nothing."""

    def propose(self, turn: Turn) -> Block:
        return point_block((), (), torch.device("cpu"))


def test_tokens_per_pass_are_those_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a mean that leaves out the token that every pass emits."""
    monkeypatch.setattr(training, "untrained", lambda name, target: Silent())
    before, after = training.tokens_per_pass("medusa")
    assert before == 1
    assert 2 < after < 4


@pytest.mark.parametrize("folder", sorted({row.folder for row in ROWS.values()} - {""}))
def test_a_start_has_the_names_of_the_file_and_other_values(folder: str) -> None:
    """Kills a start that is loaded beside the trained tensors instead of in their place."""
    (file,) = (FIXTURES / folder).glob("*.safetensors")
    trained_to, start = load_file(file), START(folder)
    assert start.keys() <= trained_to.keys()
    moved = [name for name, x in start.items() if not torch.equal(x, trained_to[name])]
    assert len(moved) >= 9
    frozen = ("d2t", "t2d", "embed_tokens.weight", "head.weight", "correction_bias")
    assert all(name.endswith(frozen) for name in start.keys() - moved)
