"""The effects in miniature: what was committed shows them, and a claim that does not show is violated."""

from pathlib import Path

import pytest

from refengine.decoder import effects

FIXTURES = Path(__file__).parents[1] / "fixtures"


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
