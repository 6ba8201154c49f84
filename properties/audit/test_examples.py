"""The engines under examples/: built by the commands of docs/vectors.md, right on the vectors and in an audit of their
process; and a mistake that is planted in each is found by both."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from properties.commands.test_command_line import run
from refengine.commands.vectors_release import write_release
from refengine.source_tree import ROOT

# What each language needs; the file, the text and the mistake that is planted in it; what the audit says of that.
LANGUAGES = {
    "cpp": (
        ("cmake", "c++"),
        ("rules.hpp", "chance.choose(residual(p[i], 1, q, 1), ", "chance.choose(p[i], "),
        "resample from target",
    ),
    "rust": (
        ("cargo",),
        ("src/rules.rs", "&residual(target, 1.0, q, 1.0)", "target"),
        "resample from target",
    ),
    "typescript": (
        ("npm", "node"),
        ("src/rules.ts", "Math.max(a * px - b * q[x], 0)", "Math.abs(a * px - b * q[x])"),
        "another correction",
    ),
}


def commands(language: str) -> list[str]:
    """What docs/vectors.md says to build, check and audit an engine with."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "vectors.md").read_text(), re.S)
    (block,) = [block for block in blocks if f"examples/{language}" in block]
    return block.strip().splitlines()


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_engine_is_right_and_its_planted_mistake_is_found(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills an example that does not build or errs, vectors that miss a mistake, and a protocol that is not spoken."""
    needed, (file, right, wrong), told = LANGUAGES[language]
    absent = [tool for tool in needed if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"{' and '.join(absent)} is not installed here")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    write_release(tmp_path / "vectors")
    monkeypatch.chdir(tmp_path)
    build, check, audit = commands(language)

    built = shell(build, tmp_path)
    if language == "typescript" and built.returncode and "npm error code E" in built.stderr:
        pytest.skip(f"npm cannot install TypeScript here: {built.stderr.strip().splitlines()[0]}")
    assert built.returncode == 0, built.stdout + built.stderr
    checked = shell(check, tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"^(\d{3}) of \1 vectors agree$", checked.stdout, re.M)
    assert run(*audit.removeprefix("refengine ").replace("--calls 600", "--calls 300").split()) == 0

    source = tmp_path / "examples" / language / file
    assert source.read_text().count(right) == 1
    source.write_text(source.read_text().replace(right, wrong))
    assert shell(build, tmp_path).returncode == 0
    checked = shell(check, tmp_path)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert ": expected [" in checked.stdout
    capsys.readouterr()
    assert run(*audit.removeprefix("refengine ").split()) == 1
    assert told in capsys.readouterr().out.splitlines()[-1]


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
