"""docs/serving.md: every command in it runs, against servers on the addresses that it names."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from properties.audit.served.test_suite import planned_whole
from properties.helpers.served.engine import Engine
from properties.helpers.served.http import serving
from properties.house.test_blocks import blocks
from refengine.cli import app
from refengine.source_tree import ROOT


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a page whose commands nobody has tried, a file that is not written, and a verdict of an honest server."""
    monkeypatch.chdir(tmp_path)
    run = [text for above, _, text in blocks("docs/serving.md") if above.endswith(Path(__file__).name)]
    assert len(run) == 2
    with serving(Engine(True)) as on, serving(Engine()) as off:
        for text in run:
            words = text.replace("http://localhost:8000/v1", on).replace("http://localhost:8001/v1", off).split()
            told = CliRunner().invoke(app, words[1:])
            assert told.exit_code == 0, told.output
            assert "VERDICT consistent" in told.stdout.splitlines()[-1]
    assert {file.name for file in tmp_path.iterdir()} == {"audit.jsonl", "report.json", "junit.xml", "audit.sarif"}


def test_every_claim_has_its_name_on_the_page() -> None:
    """Kills a claim that is violated and that a maintainer looks for in vain."""
    page = (ROOT / "docs" / "serving.md").read_text("utf-8")
    names = {cell.name for cell in planned_whole()[0].cells if not cell.name.startswith("parity/")}
    kinds = {re.split(r", | of \d| \(chat\)", name)[0] for name in names}
    assert len(kinds) > 50
    assert {kind for kind in kinds if f"`{kind}" not in page} == set()


def test_what_is_violated_is_said_first(tmp_path: Path) -> None:
    """Kills a verdict behind a hundred lines, one without its request, and an untested claim that exits 0."""
    with serving(Engine(True, "bias ignored")) as on, serving(Engine()) as off:
        asked = ["audit", "endpoint", "--on", on, "--off", off]
        told = CliRunner().invoke(app, [*asked, "--only", "parity/logit_bias", "--requests", "500"])
        honest = CliRunner().invoke(app, [*asked, "--only", "law", "--requests", "150"])
    assert told.exit_code == 1
    assert told.stdout.startswith("violated    audit.endpoint/parity/logit_bias")
    assert "logit_bias: ignored with speculation; the first difference is at token" in told.output
    assert '"logit_bias"' in told.output
    assert honest.exit_code == 3
    assert "VERDICT not-tested" in honest.output
