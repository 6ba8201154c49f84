"""DSpark's confidence head: what the report says of it is counted from runs, and a head that knows nothing shows."""

from statistics import fmean

import pytest
import torch

from refengine.decoder.checkpoints.load import load_drafter
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.loop import begin
from refengine.decoder.protocols import Turn
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.errors import BadInput
from refengine.selfcheck.effects import confidence
from refengine.selfcheck.effects.confidence_rounds import BINS, Round, in_bins, reliability_table
from refengine.source_tree import FIXTURES


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence, "TEXTS", 4)
    confidence.played.cache_clear()


def test_rounds_are_counted_as_they_were_played() -> None:
    """Kills a position after the first refusal that counts as judged, and a confidence of another position."""
    rounds = confidence.played("dspark", 0.0)
    assert all(len(r.confidences) == len(r.overlaps) >= r.accepted for r in rounds)
    assert sum(r.accepted + 1 for r in rounds) >= 4 * (confidence.LENGTH - 1)
    places = confidence.judged("dspark")
    assert len(places) == sum(min(r.accepted + 1, len(r.confidences)) for r in rounds)
    assert fmean(accepted for _, _, accepted in places) == pytest.approx(fmean(o for _, o, _ in places), abs=0.12)


def test_a_cut_is_before_the_first_low_confidence() -> None:
    """Kills a sweep that cuts after the position, and one that keeps it."""
    for threshold in (0.7, 0.9):
        rounds = confidence.played("dspark", threshold)
        assert all(c >= threshold for r in rounds for c in r.confidences)
        assert any(len(r.confidences) < 3 for r in rounds)


def test_a_head_that_states_the_opposite_is_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a verdict that holds whatever the confidences are, and a sweep that saves whatever it cuts."""
    right = [Round((0.9, 0.2), (0.95, 0.3), 1), Round((0.8, 0.4), (0.7, 0.4), 2)] * 8
    for turned in (False, True):
        made = [Round(tuple(1 - c for c in r.confidences), r.overlaps, r.accepted) for r in right] if turned else right
        monkeypatch.setattr(confidence, "played", lambda name, threshold, made=made: made)
        (finding,) = confidence.reliability("dspark")
        assert finding.verdict == ("violated" if turned else "consistent")
    monkeypatch.setattr(
        confidence, "played", lambda name, threshold: [Round((0.9,) * (2 - (threshold > 0)), (1.0, 1.0), 0)]
    )
    assert confidence.sweep("dspark")[0].verdict == "consistent"  # tau stays, half of the block goes
    monkeypatch.setattr(
        confidence, "played", lambda name, threshold: [Round((0.9, 0.9), (1.0, 1.0), 0 if threshold else 2)]
    )
    assert confidence.sweep("dspark")[0].verdict == "violated"  # tau goes, the block stays


def test_reliability_by_hand() -> None:
    """Kills bins of unequal size, and means over all places instead of a bin's."""
    places = [(k / 16, 1 - k / 16, float(k % 2)) for k in range(16)]
    bins = in_bins(places)
    assert len(bins) == BINS == 8
    assert bins[0] == ((0 + 1) / 32, 1 - 1 / 32, 0.5)
    assert reliability_table(places[:15], 0.0)["count"] == [1, *[2] * 7], "an interval of a bin knows how many it has"


# --- without the Markov head -----------------------------------------------------------------------------------------


def rows(markov: bool, seed: int) -> tuple[list[int], torch.Tensor]:
    """Drafted tokens and their rows after one prompt."""
    target = confidence.judge("tiny/target")
    drafter = load_drafter(FIXTURES / "tiny" / "dspark", target, markov=markov)
    assert isinstance(drafter, DSpark)
    drafter.start((4, 3, 4), begin(target, (4, 3, 4), drafter.taps))
    policy = pipeline(temperature(1.0))
    block = drafter.propose(Turn((4, 3, 4), (4, 3, 4, 2), policy, Philox(seed, torch.tensor([0]))))
    assert block.q is not None
    return block.tokens[0].tolist(), block.q[0]


def test_without_the_markov_head_no_slot_knows_the_draft_before_it() -> None:
    """Kills a switch that is read and not used: with the head on, the rows depend on what was drawn."""
    off = [rows(False, seed) for seed in range(6)]
    on = [rows(True, seed) for seed in range(6)]
    assert len({tuple(tokens) for tokens, _ in off}) > 1
    assert all(torch.equal(q, off[0][1]) for _, q in off)
    assert not all(torch.equal(q, on[0][1]) for _, q in on)
    assert not torch.equal(off[0][1][0], on[0][1][0])  # the head shifts the first slot too


def test_a_file_without_a_markov_head_has_none_to_switch_off() -> None:
    """Kills an option that is taken and ignored."""
    target = confidence.judge("tiny/target")
    with pytest.raises(BadInput, match="Markov head was switched off, and this checkpoint has none"):
        load_drafter(FIXTURES / "dflash" / "deepspec", target, markov=False)
    with pytest.raises(BadInput, match="markov is for DSpark"):
        load_drafter(FIXTURES / "heads" / "medusa", target, markov=False)
