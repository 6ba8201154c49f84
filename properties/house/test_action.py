"""The action of `.github/actions/audit`: its script is run with a `refengine` that writes down how it was called, and
the call is parsed as the command line parses it. docs/ci.md shows how it is used; GitHub itself is not here."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from properties.house.test_blocks import blocks
from refengine.cli import app
from refengine.source_tree import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "actions" / "audit" / "action.yml").read_text())
STEPS = {step.get("name", step.get("uses")): step for step in ACTION["runs"]["steps"]}


def called(command: str, folder: Path, code: int = 0) -> tuple[int, list[str], str]:
    """(exit code, the words that refengine got, what the step says to later ones) of the step that audits."""
    stub = folder / "refengine"
    stub.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/words\necho {{}} > {folder}/files/found.sarif\nexit {code}\n'
    )
    stub.chmod(0o755)
    given = {"COMMAND": command, "FILES": folder / "files", "GITHUB_STEP_SUMMARY": folder / "md"}
    given |= {"GITHUB_OUTPUT": folder / "says", "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    env = os.environ | {name: str(value) for name, value in given.items()}
    assert STEPS["Audit"]["env"].keys() == {"COMMAND", "FILES"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]  # as GitHub runs `shell: bash`
    ended = subprocess.run(
        [*shell, STEPS["Audit"]["run"]], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    words = (folder / "words").read_text().splitlines() if (folder / "words").exists() else []
    return ended.returncode, words, (folder / "says").read_text() if (folder / "says").exists() else ended.stderr


def parsed(words: list[str]) -> dict[str, Any]:
    """The parameters of the command that is called so. Raises click's errors for an option that does not exist."""
    name, command = "", typer.main.get_command(app)
    while hasattr(command, "get_command"):
        name, command, words = command.resolve_command(typer.Context(command), words)
    return dict(command.make_context(name, words).params)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("audit kernel my_sampler:verify --path 'a folder'", {"subject": "my_sampler:verify", "path": "a folder"}),
        ("audit trace rounds.safetensors", {"record": "rounds.safetensors"}),
        ("audit process --calls 9 -- ./engine serve --out x", {"calls": 9, "command": "./engine serve --out x"}),
        ("audit trace $(touch${IFS}stray);", {"record": "$(touch${IFS}stray);"}),
    ],
)
def test_the_step_calls_a_command_that_exists(command: str, expected: dict[str, Any], tmp_path: Path) -> None:
    """Kills an option that is gone, quotes that fall apart, options given to the audited program, and a shell in it."""
    code, words, says = called(command, tmp_path)
    assert (code, says) == (0, "sarif=true\n")
    found = parsed(words)
    for name, value in expected.items():
        told = found[name]
        assert (
            " ".join(told) if isinstance(told, list | tuple) else told if isinstance(told, int) else str(told)
        ) == value
    files = {name: Path(found[name]).name for name in ("junit", "sarif", "out", "summary")}
    assert files == {"junit": "found.xml", "sarif": "found.sarif", "out": "found.json", "summary": "md"}
    assert not (tmp_path / "stray").exists()


def test_a_violation_fails_the_step_and_is_still_shown(tmp_path: Path) -> None:
    """Kills an action that is green whatever is found, or that shows nothing where something is."""
    assert called("audit trace rounds.safetensors", tmp_path, 1)[::2] == (1, "sarif=true\n")
    assert called("audit trace 'rounds", tmp_path)[0] != 0, "a quote that is not closed"


def test_every_input_is_used_and_documented() -> None:
    """Kills an input that does nothing, one that no page names, and a page that names one that is not there."""
    text, page = yaml.safe_dump(ACTION["runs"]), (ROOT / "docs" / "ci.md").read_text()
    for name, told in ACTION["inputs"].items():
        assert f"inputs.{name}" in text
        assert f"`{name}`" in page
        assert told["description"]
    assert ACTION["inputs"]["torch-index-url"]["default"] in (ROOT / "README.md").read_text() + page
    assert all("shell" in step for step in ACTION["runs"]["steps"] if "run" in step)
    (workflow,) = [
        yaml.safe_load(text) for above, _, text in blocks("docs/ci.md") if above.endswith(Path(__file__).name)
    ]
    (step,) = [step for step in workflow["jobs"]["lossless"]["steps"] if "refengine" in step["uses"]]
    assert (ROOT / step["uses"].split("refengine/")[1].split("@")[0] / "action.yml").is_file()
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert parsed(step["with"]["command"].split())["subject"] == "my_sampler:verify"
