"""`refengine show`: what several audits wrote on one page, and the small files that build servers read."""

import json
from pathlib import Path

import msgspec
import pytest

from properties.helpers import report_example as example
from properties.helpers.command_line import run
from refengine.commands.told import markdown
from refengine.report.exchange import badge
from refengine.report.report import make_report, save_report


@pytest.fixture
def reports(tmp_path: Path) -> list[Path]:
    """Two reports with a finding each, and one that has the first again."""
    files = []
    for i, finding in enumerate([*example.subjects()[:2], example.subjects()[0]]):
        files.append(tmp_path / f"{i}.json")
        save_report(make_report([finding], seed=0), files[-1])
    return files


def test_reports_come_together_on_one_page(reports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a page of the last report alone, and one without what changed."""
    page = reports[0].parent / "page.html"
    assert run("show", *reports[:2], "--page", page, "--against", reports[0]) == 0
    text, said = page.read_text(), capsys.readouterr().out
    for finding in example.subjects()[:2]:
        assert finding.id in text
    assert f"Appeared: {example.subjects()[1].id} (violated)" in said
    assert "1 findings are as in" in said
    assert said.splitlines()[-1].endswith("2 violated")


def test_one_finding_of_two_reports_is_refused(reports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Kills a finding that silently takes the place of another of its id."""
    assert run("show", *reports, "--page", reports[0].parent / "page.html") == 2
    assert example.subjects()[0].id in capsys.readouterr().err
    assert not (reports[0].parent / "page.html").exists()


def test_the_summary_of_a_job_and_a_badge() -> None:
    """Kills a summary without the violation or the reason, and a badge that is green for what is not tested."""
    text = markdown(example.subjects(), "VERDICT violated (2 violated): zero at zero")
    assert text.startswith("### refengine: violated (2 violated)")
    for finding in example.subjects():
        assert finding.verdict == "consistent" or finding.id in text
        assert finding.reason in text
    assert "1 of 4 claims are consistent." in text
    colours = {
        word: json.loads(badge(f"VERDICT {word} (1)"))["color"] for word in ("consistent", "violated", "not-tested")
    }
    assert colours == {"consistent": "brightgreen", "violated": "red", "not-tested": "yellow"}
    assert msgspec.json.decode(badge("VERDICT not-tested (1)"))["message"] == "not tested"
