"""The effects in miniature: what was committed shows them, and a claim that does not show is violated."""

import runpy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from refengine.decoder import effects, trained
from refengine.decoder.drafters.prompt_lookup import PromptLookup
from refengine.decoder.protocols import Turn
from refengine.decoder.rows import point_block
from refengine.decoder.tiny import TINY
from refengine.engine.block import Block

FIXTURES = Path(__file__).parents[1] / "fixtures"
START = runpy.run_path(str(FIXTURES / "untrained.py"))["start"]


def test_every_effect_is_as_committed() -> None:
    """Kills a variant that is read as another, and an effect that comes or goes unseen."""
    verdicts = {finding.id: finding.verdict for finding in effects.effects()}
    assert verdicts.pop("effects/fused-taps") == "not tested"
    assert set(verdicts.values()) == {"consistent"}
    assert len(verdicts) == 6


@pytest.mark.parametrize("name", ["training", "fused-taps"])
def test_variants_that_change_places_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison that holds either way round."""
    told = effects.EFFECTS[name]
    turned = effects.Effect(told.claim, told.source, told.worse, told.better, told.depth, told.not_shown)
    monkeypatch.setitem(effects.EFFECTS, name, turned)
    assert effects.effect(name)[0].verdict == "violated"


# --- before and after training ---------------------------------------------------------------------------------------


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "TINY", {name: TINY[name] for name in ("medusa", "dflash", "ngram")})


@pytest.mark.usefixtures("two")
def test_training_shows_in_tokens_per_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a start that is the trained drafter, and a claim that holds whatever training does."""
    (finding,) = trained.training()
    assert finding.verdict == "consistent"
    table = finding.tables["tokens per pass"]
    assert table["drafter"] == ["medusa", "dflash"]  # n-grams are not trained
    monkeypatch.setattr(trained, "untrained", lambda name, target: TINY[name].load(target))
    (idle,) = trained.training()
    assert idle.verdict == "violated"
    assert idle.tables["tokens per pass"]["before"] == table["after"]


class Silent(PromptLookup):
    """Proposes nothing."""

    def propose(self, turn: Turn) -> Block:
        return point_block((), (), torch.device("cpu"))


def test_tokens_per_pass_are_those_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a mean that leaves out the token that every pass emits."""
    monkeypatch.setattr(trained, "untrained", lambda name, target: Silent())
    before, after = trained.tokens_per_pass("medusa")
    assert before == 1
    assert 2 < after < 4


@pytest.mark.parametrize("folder", sorted({tiny.folder for tiny in TINY.values()} - {""}))
def test_a_start_has_the_names_of_the_file_and_other_values(folder: str) -> None:
    """Kills a start that is loaded beside the trained tensors instead of in their place."""
    (file,) = (FIXTURES / folder).glob("*.safetensors")
    trained_to, start = load_file(file), START(folder)
    assert start.keys() <= trained_to.keys()
    moved = [name for name, x in start.items() if not torch.equal(x, trained_to[name])]
    assert len(moved) >= 9
    frozen = ("d2t", "t2d", "embed_tokens.weight", "head.weight", "correction_bias")
    assert all(name.endswith(frozen) for name in start.keys() - moved)
