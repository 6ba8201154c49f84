"""`checkpoint verify` on the tiny fixtures, and on the same with a defect in target, state or draft."""

from pathlib import Path
from typing import Any

import pytest
import torch

from refengine.commands import verify_checkpoint
from refengine.decoder import load_drafter, load_target
from refengine.decoder.targets import bitwise
from refengine.report.finding import Finding
from refengine.selfcheck.drafters.planted_bugs import BACKBONE, NO_CROP, TARGET
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

TINY = FIXTURES / "tiny"
AR, DSPARK = (f"refengine.decoder.drafters.{name}" for name in ("ar", "dspark"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two prompts of 24 tokens for four of 48: of 32 drafts that should be accepted 12 are, which shows too."""
    monkeypatch.setattr(verify_checkpoint, "LENGTHS", (4, 9))
    monkeypatch.setattr(verify_checkpoint, "NEW_TOKENS", 24)


def verdicts(drafter: str) -> dict[str, str]:
    found = verify_checkpoint.verify(str(TINY / drafter), str(TINY / "target"), "float64")
    return {finding.id: finding.verdict for finding in found}


@pytest.mark.parametrize("drafter", ["ar", "dspark"])
def test_a_sound_checkpoint_is_consistent(drafter: str) -> None:
    """Kills a check that accuses a correct drafter, or that compares nothing."""
    found = verify_checkpoint.verify(str(TINY / drafter), str(TINY / "target"), "float32")
    assert [finding.verdict for finding in found] == ["consistent"] * (6 if drafter == "dspark" else 4)
    assert found[1].numbers["states compared"] > 20
    assert found[2].numbers["judged"] > 100
    assert found[0].numbers["outputs with equal tokens"] + found[0].numbers["ties"] == found[0].numbers["prompts"]
    assert found[-1].numbers["rows compared"] > 100
    if drafter == "dspark":
        the_heads_are_measured(*found[2:5])


def the_heads_are_measured(whole: Finding, without: Finding, cut: Finding) -> None:
    """Kills: a head that is switched off and drafts on, a threshold that cuts nothing or that stays for what follows,
    confidences of another round than theirs."""
    assert without.id == "checkpoint/acceptance, without the Markov head"
    assert without.numbers["expected"].value != whole.numbers["expected"].value
    proposed, cost = ([number.value for number in cut.tables["sweep"][name]] for name in ("proposed", "cost"))
    assert proposed == sorted(proposed, reverse=True)
    assert proposed[0] > proposed[-1] + 0.5
    assert len(set(cost)) > 2  # no confidence is below 0.5: that threshold cuts nothing
    assert cut.tables["acceptance"]["position"] == whole.tables["acceptance"]["position"]
    assert cut.numbers["calibration error of the confidences"].value < 0.5


@pytest.mark.usefixtures("short")
def test_a_bit_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a bitwise check of tokens alone: a pass without its padding gives the same tokens and other bits."""
    edit = Edit(bitwise.__name__, "idle = len(tokens), target.lanes - len(tokens)", "idle = len(tokens), 0")
    edited = edited_module(bitwise.__name__, [edit])

    def load(path: str, dtype: torch.dtype, device: str, slots: int | None = None) -> Any:
        loaded: Any = load_target(path, dtype, device, slots)
        return edited.BitwiseTarget(loaded.model, slots, 8) if slots else loaded

    monkeypatch.setattr(verify_checkpoint, "load_target", load)
    found = {x.id: x for x in verify_checkpoint.verify(str(TINY / "dspark"), str(TINY / "target"), "float32")}
    assert found["checkpoint/greedy"].verdict == "consistent"
    assert found["checkpoint/bitwise"].verdict == "violated"
    assert "bits differ after" in found["checkpoint/bitwise"].witness


@pytest.mark.usefixtures("short")
def test_a_target_that_keeps_rejected_rows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a greedy check that compares the loop with itself, and a tie that excuses a defect."""
    edited = edited_module(TARGET, [NO_CROP])

    def load(path: str, dtype: torch.dtype, device: str, slots: int | None = None) -> Any:
        loaded: Any = load_target(path, dtype, device, slots)
        return loaded if slots else edited.TransformersTarget(loaded.model)

    monkeypatch.setattr(verify_checkpoint, "load_target", load)
    found = verdicts("ar")
    assert found["checkpoint/greedy"] == found["checkpoint/state"] == "violated"


@pytest.mark.usefixtures("short")
def test_a_drafter_with_a_stale_state_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a state check that looks at the target alone: lossless output hides a drafter's stale cache."""
    edit = Edit(BACKBONE, "[kept.taps[j] for j in", "[kept.taps[j].roll(1, 0) for j in")
    edited = edited_module(DSPARK, [edit])

    def load(path: str, target: Any, gamma: int | None, ngram: Path | None) -> Any:
        loaded: Any = load_drafter(path, target)
        return edited.DSpark(loaded.shape, loaded.w.tensors)

    monkeypatch.setattr(verify_checkpoint, "load_drafter", load)
    found = verdicts("dspark")
    assert found == {
        "checkpoint/greedy": "consistent",
        "checkpoint/state": "violated",
        "checkpoint/acceptance": "consistent",
        "checkpoint/bitwise": "consistent",
    }


@pytest.mark.usefixtures("short")
def test_drafts_that_are_not_drawn_from_q_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an acceptance that is compared with itself: the drafts here are the row's least likely tokens."""
    edit = Edit(
        "refengine.decoder.rows", 'self.turn.draw(self.q[-1], ("draft", len(self.path)))', "int(self.q[-1].argmin())"
    )
    edited = edited_module(AR, [edit])

    def load(path: str, target: Any, gamma: int | None, ngram: Path | None) -> Any:
        return edited.AR(load_target(path, target.dtype), gamma or 4)

    monkeypatch.setattr(verify_checkpoint, "load_drafter", load)
    assert verdicts("ar")["checkpoint/acceptance"] == "violated"
