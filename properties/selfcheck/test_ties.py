"""Ties and defects: the rule, the noise that it is set against, and that servers are held to the same one."""

import pytest
import torch

from refengine.audit.served.ask import Choice
from refengine.audit.served.claims.ties import ties
from refengine.audit.served.noise import NATS, Noise
from refengine.evidence.ties import MARGIN, allowed, tied
from refengine.selfcheck.drafters.ties import parting
from refengine.selfcheck.instrument import ties as instrument
from refengine.selfcheck.instrument.ties import HALVED, HONEST, counted, model

TEXT = (5, 17, 3, 200, 41)


def test_the_rule_is_one_number_on_either_side() -> None:
    """Kills a margin without its sign, a floor that is added, and noise that excuses more than its multiple."""
    assert tied(-MARGIN, 1.0)
    assert tied(MARGIN, 1.0)
    assert not tied(MARGIN * 1.001, 1.0)
    assert not tied(-MARGIN * 1.001, 1.0)
    assert (allowed(0.0, 0.5), allowed(1.0, 0.5)) == (0.5, MARGIN)


def test_servers_are_held_to_the_same_rule() -> None:
    """Kills a second rule for servers: what parts by more than the allowed nats is no tie, by less it is one."""
    assert Noise(apart=1.0).nats == allowed(1.0, NATS) == MARGIN
    assert Noise().nats == NATS
    for margin, wanted in ((NATS * 0.99, True), (NATS * 1.01, False)):
        row = {"a": -1.0, "b": -1.0 - margin}
        on, off = Choice("b", tokens=("b",), top=(row,)), Choice("a", tokens=("a",), top=(row,))
        assert ties(on, off, Noise().nats) is wanted


def test_noise_is_that_of_the_dtype_and_of_the_model_alone() -> None:
    """Kills noise that is nothing, noise as large as the logits, and a model that is left with hooks in it."""
    noises = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        network = model(0, dtype)
        with torch.no_grad():
            row = network(input_ids=torch.tensor([TEXT]), use_cache=False).logits[0, -1]
        first, second = row.topk(2).indices.tolist()
        found = parting(network, TEXT, first, second)
        assert found == parting(network, TEXT, first, second)
        assert found.margin >= 0
        noises[dtype] = found.noise / torch.finfo(dtype).eps
        with torch.no_grad():
            assert torch.equal(network(input_ids=torch.tensor([TEXT]), use_cache=False).logits[0, -1], row)
    assert all(1e-2 < noise < 1e3 for noise in noises.values()), noises  # in roundings


def test_rounding_is_excused_and_a_defect_is_not() -> None:
    """Kills a rule that accuses bfloat16, and one that excuses a target which keeps rejected rows."""
    honest = counted(HONEST, torch.bfloat16, range(1))
    spoiled = counted("rejected rows stay", torch.float32, range(1))
    assert honest.defects == 0
    assert honest.texts > 0
    assert 0 < spoiled.texts == spoiled.defects
    assert (honest.accused, spoiled.accused) == (0, 1)


def test_texts_that_other_sums_part_are_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a rule whose false alarms were never put to the test: in bfloat16 nothing is planted, and texts part."""
    monkeypatch.setattr(instrument, "HONEST_PROMPTS", 6)
    found = counted(HALVED, torch.bfloat16, range(1))
    assert found.ties > 0
    assert found.defects == 0
