"""`checkpoint verify` of what drafters' official code saved, for targets of other sizes than the fixtures'."""

import pytest

from refengine.commands import verify_checkpoint
from refengine.source_tree import GOLDEN

pytestmark = pytest.mark.stat

PAIRS = {
    "dspark_qwen3_A": "target_q3A",
    "dflash_zlab_A": "target_q3A",
    "medusa1_A": "target_medusa1_A",
    "eagle1_A": "target_llama6A",
    "eagle3_A": "target_llama8A",
    "eagle3_deepspec_gemma4_A": "target_gemma4_deepspec",
    "sp_peagle_A": "target_sp_peagle",
    "dart_A": "target_dart_A",
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", PAIRS)
def test_official_files_are_sound(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: a check that accuses what released code wrote. Trees that are grown have no acceptance to promise."""
    monkeypatch.setattr(verify_checkpoint, "LENGTHS", (1, 9))
    monkeypatch.setattr(verify_checkpoint, "NEW_TOKENS", 12)
    found = verify_checkpoint.verify(str(GOLDEN / name / "drafter"), str(GOLDEN / PAIRS[name]), dtype)
    verdicts = {finding.id.partition("/")[2]: finding.verdict for finding in found}
    assert "violated" not in verdicts.values(), verdicts
    assert verdicts["greedy"] == verdicts["bitwise"] == verdicts["state"] == "consistent"
