"""The engines under examples/: built by the commands of docs/vectors.md, right on the vectors and in an audit of their
process; and a mistake that is planted in each is found by both."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from properties.helpers.command_line import run
from refengine.commands.vectors_release import write_release
from refengine.exact.vectors import LOSSLESS
from refengine.source_tree import ROOT

pytestmark = pytest.mark.on_record

# A rule that is written later is named by the engines as one that they do not know.
IMPLEMENTED = {"leviathan", "block", "point_mass", "iid_candidates", "without_replacement", "agreement", "greedy"}

# What each language needs; the file, the text and the mistake that is planted in it; what the audit says of that.
# Then further mistakes, each in a rule of its own. All are there at once: the vectors of those rules find them, no
# other's, and the audit is of the rule that has the first.
LANGUAGES = {
    "cpp": (
        ("cmake", "c++"),
        ("rules.hpp", "chance.choose(residual(p[i], 1, q, 1), ", "chance.choose(p[i], "),
        "resample from target",
        {
            "block": ("total(p[kept]) * (den[kept] - num[kept])", "total(p[kept]) * den[kept]"),
            "iid_candidates": ("drawn_siblings(p, block, chance, true)", "drawn_siblings(p, block, chance, false)"),
            "agreement": ("chance.choose(p[at + 1], ", "chance.choose(p[out.path.size()], "),
        },
    ),
    "rust": (
        ("cargo",),
        ("src/rules.rs", "&residual(target, 1.0, q, 1.0)", "target"),
        "resample from target",
        {
            "block": ("excess(&p[kept], num, &block.q[kept], den)", "excess(&p[kept], 1.0, &block.q[kept], 1.0)"),
            "iid_candidates": ("drawn_siblings(p, block, chance, true)", "drawn_siblings(p, block, chance, false)"),
            "agreement": ("match hit(block, at, drawn)", "match hit(block, -1, drawn).filter(|&j| j > at)"),
        },
    ),
    "typescript": (
        ("npm", "node"),
        ("src/rules.ts", "residual(p[i], 1, q[i], 1)", "p[i].map((px, x) => Math.abs(px - q[i][x]))"),
        "another correction",
        {
            "block": ("num < den ? [num, den]", "num <= 0 ? [num, den]"),
            "iid_candidates": ("drawnSiblings(p, block, chance, true)", "drawnSiblings(p, block, chance, false)"),
            "agreement": ("chance.choose(p[at + 1], ", "chance.choose(p[0], "),
        },
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
    needed, (file, right, wrong), told, mistakes = LANGUAGES[language]
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
    *unknown, agreed = checked.stdout.splitlines()
    assert {line.removeprefix("not implemented here: ") for line in unknown} == {*LOSSLESS} - IMPLEMENTED
    assert re.fullmatch(r"(\d{3}) of \1 vectors agree", agreed)
    assert run(*audit.removeprefix("refengine ").replace("--calls 600", "--calls 300").split()) == 0

    source = tmp_path / "examples" / language / file
    changed = source.read_text()
    for true, false in ((right, wrong), *mistakes.values()):
        assert changed.count(true) == 1, true
        changed = changed.replace(true, false)
    source.write_text(changed)
    built = shell(build.rpartition(" && ")[2], tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    checked = shell(check, tmp_path)
    assert checked.returncode == 1
    assert {*re.findall(r"^(\w+)/\S*: expected \[", checked.stdout, re.M)} == {"leviathan", *mistakes}
    capsys.readouterr()
    assert run(*audit.removeprefix("refengine ").split()) == 1
    assert told in capsys.readouterr().out.splitlines()[-1]


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
