"""Every code block of README and docs is executed, or says above itself who executes it or why nobody does.

A line above a block, a comment that no reader sees, says what is particular about it:

    <!-- not run: REASON -->                 nobody runs it, for this reason
    <!-- run by FILE -->                     another test does, which names the page
    <!-- parsed by FILE -->                  its commands are parsed, as below
    <!-- file: NAME -->                      it is the text of a file
    <!-- file: NAME replaces "A" by "B" -->  a command, before which a file is edited
    <!-- exits N -->                         a command that ends with N

Whatever has no such line is run by bash, in a folder that the blocks of one page share.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from refengine.cli import app
from refengine.source_tree import ROOT

BLOCK = re.compile(r"(?:^ *<!-- ([^\n]+) -->\n)?^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.M | re.S)
PAGES = ["README.md", *(file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "docs").rglob("*.md")))]
SHELLS = ("sh", "console")
NOT_RUN = ("not run: ", "run by ", "parsed by ")


def blocks(page: str) -> list[tuple[str, str, str]]:
    """(what is said above it, language, text) of every block of a page."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [(above, language, re.sub(f"^{indent}", "", text, flags=re.M)) for above, indent, language, text in found]


def script(text: str) -> str:
    """What is typed in a block: the lines after a $, where there are any."""
    typed = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return "\n".join(typed) or text


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_how_it_is_run(page: str) -> None:
    """Kills an example that nobody has tried: a block without a test, or with one that does not know the page."""
    for above, language, text in blocks(page):
        known = above.startswith(("not run: ", "run by ", "parsed by ", "file: ", "exits "))
        assert known or (not above and language in SHELLS), f"{page}: nothing runs\n{text}"
        if above.startswith(("run by ", "parsed by ")):
            runner = ROOT / above.partition(" by ")[2]
            assert runner.is_file(), f"{page}: there is no {runner}"
            assert runner.name == "wheel_commands.py" or Path(page).name in runner.read_text() or above[0] == "p"


@pytest.mark.parametrize("page", [page for page in PAGES if any(not b[0].startswith(NOT_RUN) for b in blocks(page))])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    """Kills an example that fails, or ends otherwise than the page says."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "refengine"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m refengine.cli "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "folder").mkdir()
    for above, language, text in blocks(page):
        code = 0
        if above.startswith(NOT_RUN):
            continue
        if named := re.fullmatch(r'file: (\S+)(?: replaces "(.+)" by "(.+)")?', above):
            file = tmp_path / "folder" / named[1]
            if named[2] is None:
                file.write_text(text)
                continue
            assert file.read_text().count(named[2]) == 1
            file.write_text(file.read_text().replace(named[2], named[3]))
        elif above:
            code = int(above.removeprefix("exits "))
        assert language in SHELLS, f"{page}: what to do with {language}?"
        ended = subprocess.run(
            ["bash", "-ec", script(text)],
            cwd=tmp_path / "folder",
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
        assert ended.returncode == code, f"{page}:\n{text}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"


def commands(page: str) -> list[str]:
    """Every line of refengine in the workflows of a page, which must be YAML."""
    found = []
    for above, language, text in blocks(page):
        if above.startswith("parsed by "):
            assert language == "yaml"
            assert yaml.safe_load(text)
            found += re.findall(r"refengine ((?:audit|report|show).*)$", text, re.M)
    return found


def test_the_commands_of_every_ci_have_options_that_exist() -> None:
    """Kills a workflow that fails at its first run: an option that is not there, or no longer."""
    lines = [line for page in PAGES for line in commands(page)]
    assert len(lines) >= 3
    for line in lines:
        context, command = None, typer.main.get_command(app)
        words = shlex.split(line)
        while hasattr(command, "get_command"):
            name, command, words = command.resolve_command(typer.Context(command), words)
        context = command.make_context(name, words)
        assert context.params["subject"] == "my_sampler:verify"
