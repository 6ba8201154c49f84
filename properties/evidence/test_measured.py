"""The instrument measured in the report: right about a right sampler, and not about a wrong one."""

import numpy as np
import pytest

from refengine.evidence.alpha import NATS
from refengine.evidence.rows import Rows
from refengine.report.plots import plot
from refengine.selfcheck.instrument import calibration
from refengine.selfcheck.instrument import finding as measured


def test_calibration_and_power_come_out_and_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills figures of the instrument that are written down rather than made, or that cannot be made again."""
    monkeypatch.setattr(measured, "CALIBRATION_AUDITS", 60)
    monkeypatch.setattr(
        measured,
        "SHOWN_DEFECTS",
        (
            "greedy at temperature: every pick is the argmax",
            "resample from target: corrected from p instead of the residual",
        ),
    )
    for finding in measured.findings():
        assert finding.verdict == "consistent"
        assert measured.replay(**finding.recipe.arguments) == [finding]
        for name, columns in finding.tables.items():
            assert plot(name, columns) is not None


def test_calibration_notices_a_sampler_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a calibration that counts nothing: the correction is drawn from p, which no correct rule does."""

    def not_the_residual(p: Rows, q: Rows) -> Rows:
        return p

    monkeypatch.setattr(calibration, "residual", not_the_residual)
    most = calibration.audits(10, np.random.default_rng(0))
    assert (most[1::2] > NATS).all()  # every second audit is of the ratio rule
