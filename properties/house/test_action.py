"""The action of `.github/actions/audit` and the workflows of README.md and docs/ci.md: their shell steps are read from
the YAML and run by the shell and with the variables that the build server gives them. `pip` is one that writes down
what it is asked for, since nothing is installed here; the servers themselves are not here."""

import os
import subprocess
import sys
from importlib.metadata import version
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
    stub(
        folder,
        "refengine",
        f'printf "%s\\n" "$@" > {folder}/words\necho {{}} > {folder}/files/found.sarif\nexit {code}',
    )
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


def stub(folder: Path, name: str, text: str) -> None:
    """A program of this name, the first on the path."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("package", "within", "code", "installed"),
    [
        ("a wheel.whl", "theirs", 0, "a wheel.whl"),
        ("", "ours", 0, "ours/.github/actions/audit/../../.."),
        ("", "theirs", 2, None),
    ],
)
def test_the_step_installs_what_is_named_or_the_repository_of_the_action(
    package: str, within: str, code: int, installed: str | None, tmp_path: Path
) -> None:
    """Kills a name on an index that has it not, or has somebody else's, and a user's project taken for refengine."""
    (tmp_path / "ours" / "refengine" / "cli").mkdir(parents=True)
    action = tmp_path / within / ".github" / "actions" / "audit"
    action.mkdir(parents=True)
    stub(tmp_path, "pip", f'printf "%s\\n" "$@" >> {tmp_path}/asked')
    given = {"PACKAGE": package, "TORCH": "address", "GITHUB_ACTION_PATH": str(action)}
    assert STEPS["Install"]["env"].keys() == {"PACKAGE", "TORCH"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS["Install"]["run"]]
    env = os.environ | given | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(shell, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    if installed is None:
        assert ended.stdout.startswith("::error::")
        return
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[:4] == ["install", "torch", "--index-url", "address"]
    assert asked[4:] in (["install", installed], ["install", f"{tmp_path}/{installed}"])


SAMPLER = """
import torch


def verify(p, q, draft, generator):
    for i, x in enumerate(draft.tolist()):
        if torch.rand((), generator=generator) * q[i, x] < p[i, x]:
            continue
        return torch.cat([draft[:i], torch.multinomial(p[i], 1, generator=generator)])
    return torch.cat([draft, torch.multinomial(p[-1], 1, generator=generator)])
"""
FILES = {"found.xml", "found.sarif", "found.json", "summary.md"}


def scripts() -> dict[str, tuple[str, set[str]]]:
    """The shell lines of every workflow that is shown, as its server runs them, and the files that they leave."""
    found = {}
    for page in ("README.md", "docs/ci.md"):
        for above, language, text in blocks(page):
            if language != "yaml" or not above.startswith("run by"):
                continue
            job = yaml.safe_load(text)
            if isinstance(job, list):  # the steps of README.md
                job = {"jobs": {"lossless": {"steps": job}}}
            if "jobs" in job:
                steps = job["jobs"]["lossless"]["steps"]
                lines, name = [step["run"] for step in steps if "run" in step], f"{page}: GitHub"
                if not lines:
                    step = next(step for step in steps if "with" in step)
                    lines, name = (
                        [f"COMMAND='{step['with']['command']}'\n{STEPS['Audit']['run']}"],
                        f"{page}: the action",
                    )
            else:
                (told,) = job["steps"] if "steps" in job else [job["lossless"]]
                lines = told.get("script") or told["commands"]
                name = f"{page}: {'Buildkite' if 'steps' in job else 'GitLab'}"
            files = {name for name in FILES if name in text} | ({"summary.md"} if "SUMMARY" in text else set())
            found[name] = ("\n".join(lines), FILES if name.endswith("action") else files)
    return found


# A refengine that finds a violation: it writes down its words, and into every file that an option names.
FINDS = """#!{python} -IS
import sys
words = sys.argv[1:]
open("words", "w").write("\\n".join(words))
for option, file in zip(words, words[1:]):
    if option in ("--junit", "--sarif", "--out", "--summary"):
        open(file, "w").write("found")
print("VERDICT violated")
sys.exit(1)
"""


@pytest.mark.parametrize("name", scripts())
def test_a_workflow_that_is_shown_fails_a_job_with_a_violation(name: str, tmp_path: Path) -> None:
    """Kills a workflow that nobody has run: an option that is gone, a package that is installed under another name, a
    file that the next step looks for and that is not there, a job that is green over a violation. The action, which
    asks for every file, is run with refengine itself, the others with one that finds a violation at once."""
    stub(tmp_path, "pip", f'printf "%s " "$@" >> {tmp_path}/asked')
    stub(tmp_path, "refengine", f'exec "{sys.executable}" -m refengine.cli "$@"')
    if not name.endswith("the action"):
        (tmp_path / "refengine").write_text(FINDS.format(python=sys.executable))
    work = tmp_path / "work"
    work.mkdir()
    (work / "my_sampler.py").write_text(SAMPLER)
    text, files = scripts()[name]
    given = {"FILES": ".", "GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "says", "PYTHONPATH": str(ROOT)}
    env = os.environ | given | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    ended = subprocess.run(shell, cwd=work, env=env, capture_output=True, text=True, timeout=540, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "VERDICT violated" in ended.stdout
    assert {file for file in FILES if (work / file).is_file() and (work / file).stat().st_size} >= files
    if not name.endswith("the action"):
        assert parsed((work / "words").read_text().splitlines())["subject"] == "my_sampler:verify"
    if "pip" in text:
        assert f"refengine-{version('refengine')}-py3-none-any.whl" in (tmp_path / "asked").read_text()


def test_every_build_server_that_is_named_has_its_workflow() -> None:
    """Kills a workflow that the test above does not find."""
    kinds = ["README.md: GitHub", *(f"docs/ci.md: {name}" for name in ("the action", "GitHub", "GitLab", "Buildkite"))]
    assert [*scripts()] == kinds


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
    (workflow,) = [yaml.safe_load(text) for _, language, text in blocks("docs/ci.md") if "uses: ./" in text]
    (step,) = [step for step in workflow["jobs"]["lossless"]["steps"] if step["uses"].startswith("./")]
    assert (ROOT / step["uses"] / "action.yml").is_file()
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert parsed(step["with"]["command"].split())["subject"] == "my_sampler:verify"
