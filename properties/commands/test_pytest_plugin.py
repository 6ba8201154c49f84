"""The installed plugin in somebody else's repository: ten lines there test their sampler."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from refengine.source_tree import ROOT

SAMPLER = """
import torch

def verify(p, q, draft, generator):
    for i, x in enumerate(draft.tolist()):
        if torch.rand((), generator=generator) * q[i, x] < p[i, x]:
            continue
        left = {residual}
        return torch.cat([draft[:i], torch.multinomial(left, 1, generator=generator)])
    return torch.cat([draft, torch.multinomial(p[-1], 1, generator=generator)])
"""
TEST = """
def test_my_sampler_is_lossless(audit_sampler):
    audit_sampler("my_sampler:verify", calls=300, out="found.json")
"""
MISTAKEN = """
def test_a_module_that_is_not_there(audit_sampler):
    audit_sampler("my_smapler:verify")

def test_a_form_that_is_none(audit_sampler):
    audit_sampler("my_sampler:verify", signature="verfy")

def test_a_number_of_calls_that_is_none(audit_sampler):
    audit_sampler("my_sampler:verify", calls=0)

def test_a_number_that_is_text(audit_sampler):
    audit_sampler("my_sampler:verify", calls="300")

def verify(p, q, draft, generator):
    return draft

def test_the_function_itself(audit_sampler):
    audit_sampler(verify)
"""


PAGES = ("README.md", "docs/auditing.md")
RIGHT = "(p[i] - q[i]).clamp(min=0)"


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)


@dataclass(frozen=True)
class Run:
    """A run of somebody's tests: what each said as it failed, "" of one that passed, by file and test."""

    folder: Path
    printed: str
    said: dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run for all: a sampler that is wrong and one that is right, tested by us and as the pages show it, and
    mistakes."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "my_sampler.py").write_text(SAMPLER.format(residual="p[i]"))
    (folder / "right_sampler.py").write_text(SAMPLER.format(residual=RIGHT))
    files = {"wrong": TEST, "mistaken": MISTAKEN}
    files["unwritable"] = TEST.replace("found.json", "/dev/full")
    files["right"] = TEST.replace("my_sampler:", "right_sampler:").replace(', out="found.json"', "")
    for page in PAGES:
        (shown,) = re.findall(r"```python\n(def test_my_sampler.*?)```", (ROOT / page).read_text(), re.S)
        files[Path(page).stem] = shown.replace("found.json", "shown.json")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    result = run_pytest(folder, "--junit-xml", "junit.xml")
    assert result.returncode == 1, result.stdout
    said = {}
    for case in ElementTree.parse(folder / "junit.xml").iter("testcase"):
        assert case.find("error") is None, result.stdout
        failure = case.findtext("failure", "")
        said[case.attrib["classname"].removeprefix("test_"), case.attrib["name"]] = " ".join(failure.split())
    return Run(folder, result.stdout, said)


LOSSLESS = "test_my_sampler_is_lossless"


def test_a_wrong_sampler_fails_with_its_diagnosis(theirs: Run) -> None:
    """Kills a fixture that swallows the verdict, or that looks for the subject in our repository; a failure without its
    size, its witness, its seed or the command that makes it again; and frames of ours above it."""
    for said in (
        "my_sampler:verify is not shown to be lossless: violated",
        "It emits token",
        "corrected from p instead of the residual",
        "size total variation 0.16",
        "seed 0",
        "again: refengine rerun found.json",
    ):
        assert said in theirs.said["wrong", LOSSLESS]
    assert "pytest_plugin.py" not in theirs.printed
    assert (theirs.folder / "found.json").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_the_test_that_a_page_shows_finds_a_wrong_sampler(theirs: Run, page: str) -> None:
    """Kills an example of a test that does not run as printed, or that passes on anything."""
    assert "corrected from p instead of the residual" in theirs.said[Path(page).stem, LOSSLESS]


def test_a_mistake_is_one_line_without_frames_of_ours(theirs: Run) -> None:
    """Kills a traceback through the auditor for a module that is mistyped, and a mistake that passes."""
    said = [said for (file, _), said in theirs.said.items() if file == "mistaken"]
    for words in (
        "no module is called 'my_smapler'",
        "unknown signature 'verfy'",
        "calls are one or more, got 0",
        "calls is a whole number, got '300'",
    ):
        assert sum(line.startswith(f"refengine: {words}") for line in said) == 1
    assert any("is named: 'test_mistaken:verify', say, not <function verify" in line for line in said)
    assert "Traceback" not in theirs.printed
    assert "pytest_plugin.py" not in theirs.printed


def test_a_right_sampler_passes(theirs: Run) -> None:
    """Kills a fixture that fails on everything."""
    assert theirs.said["right", LOSSLESS] == ""
    assert f"{len(PAGES) + 7} failed, 1 passed" in theirs.printed


def test_a_report_that_cannot_be_written_hides_no_verdict(theirs: Run) -> None:
    """Kills minutes of an audit whose verdict is lost with its file."""
    said = theirs.said["unwritable", LOSSLESS]
    assert "my_sampler:verify is not shown to be lossless: violated" in said
    assert "refengine: the report could not be written: cannot write /dev/full: No space left" in theirs.printed


def test_a_project_that_does_not_use_it_gets_nothing(tmp_path: Path) -> None:
    """Kills markers that appear in every project of the environment."""
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    assert True\n")
    result = run_pytest(tmp_path, "--markers")
    assert result.returncode == 0
    assert "refengine" not in result.stdout
    assert "large-sample" not in result.stdout


def test_collection_imports_no_torch() -> None:
    """Kills an import of torch by the plugin itself: every pytest run of its users would pay seconds for it."""
    code = "import sys, refengine.pytest_plugin; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_each_claim_about_a_server_is_a_test(tmp_path: Path) -> None:
    """Kills options that audit nothing, a violated claim that passes, and claims that fail for another's defect."""
    from properties.helpers.served.engine import Engine
    from properties.helpers.served.http import serving

    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    with serving(Engine(True, "usage counts the drafts")) as on, serving(Engine()) as off:
        asked = [*plain, "--refengine-on", on, "--refengine-off", off, "--refengine-allow-untested"]
        result = subprocess.run(
            [*asked, "--refengine-requests", "420", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True
        )
    assert result.returncode == 1, result.stdout
    assert "usage is not the number of tokens, with speculation alone" in result.stdout
    assert "3 failed" in result.stdout  # the usage, the same text with another usage, and more tokens than asked for
    assert "passed" in result.stdout
    alone = subprocess.run([*plain, "--refengine-on", "http://127.0.0.1:9/v1"], cwd=tmp_path, capture_output=True)
    assert alone.returncode == 4
