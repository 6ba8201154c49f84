"""The README's sampler, its command line and its workflow are tried as they stand."""

import json
import re
from pathlib import Path

import pytest

from properties.helpers.command_line import run
from refengine.source_tree import ROOT


def block(language: str, holding: str) -> str:
    """The one code block of a language that holds a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (found,) = [text for text in blocks if holding in text]
    return str(found)


def test_the_sampler_of_the_readme_is_told_its_defect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills an example that does not run as printed, a workflow with an option that is not there, and files that it
    names and that are not written."""
    (tmp_path / "my_sampler.py").write_text(block("python", "def verify"))
    line = next(line for line in block("yaml", "refengine audit").splitlines() if "refengine audit" in line)
    words = line.partition("refengine ")[2].replace('"$GITHUB_STEP_SUMMARY"', "summary.md").split()
    files = [str(tmp_path / word) if "." in word else word for word in words]
    more = ["--out", tmp_path / "found.json", "--sarif", tmp_path / "found.sarif", "--badge", tmp_path / "badge.json"]
    assert run(*files, "--path", tmp_path, *more) == 1
    told = capsys.readouterr().out
    assert "It emits token" in told
    assert "Look at the line that replaces a refused draft" in told
    assert told.splitlines()[-1].startswith("VERDICT violated (1 violated): resample from target")
    assert "It emits token" in (tmp_path / "summary.md").read_text()
    assert json.loads((tmp_path / "badge.json").read_text())["color"] == "red"
    for file in ("found.xml", "found.json", "found.sarif"):
        assert (tmp_path / file).stat().st_size > 500


def test_the_page_of_citation_names_this_version() -> None:
    """Kills a citation of another version than the one that is installed."""
    from importlib.metadata import version

    assert f"version: {version('refengine')}\n" in (ROOT / "CITATION.cff").read_text()
