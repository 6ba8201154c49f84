"""`refengine checkpoint verify`: consistent on a good drafter, violated on one that forgets to roll back."""

from pathlib import Path

import pytest

from refengine.audit.checkpoint import verify_checkpoint
from refengine.decoder.target import TransformersTarget
from refengine.errors import BadInput

TINY = Path(__file__).parent.parent / "fixtures" / "tiny"


def verdicts(drafter: str = "dspark") -> dict[str, str]:
    return {f.id: f.verdict for f in verify_checkpoint(str(TINY / drafter), str(TINY / "target"))}


@pytest.mark.parametrize("drafter", ["ar", "dspark"])
def test_a_good_drafter_is_consistent(drafter: str) -> None:
    """Kills a check that calls rounding between verify and single passes a defect."""
    assert verdicts(drafter) == {"checkpoint/greedy": "consistent", "checkpoint/state": "consistent"}


def test_rows_that_stay_after_a_rejection_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a check that never rejects, and one that compares the state with itself."""
    keep = TransformersTarget.keep

    def shifted(self: TransformersTarget, rows: list[int]) -> None:
        keep(self, [max(row - 1, 0) for row in rows] if len(rows) == 2 else rows)

    monkeypatch.setattr(TransformersTarget, "keep", shifted)
    assert verdicts()["checkpoint/state"] == "violated"


def test_a_drafter_for_another_target_is_refused() -> None:
    """Kills a loader that lets a vocabulary of another size through."""
    with pytest.raises(BadInput, match="target has"):
        verify_checkpoint(str(TINY.parent / "golden/dspark_qwen3_A/drafter"), str(TINY / "target"))
