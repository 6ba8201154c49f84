"""Every code block of README and docs is executed; where another test does it, a line above the block says which.

A line above a block, a comment that no reader sees, says what is particular about it:

    <!-- run by FILE -->                     another test does, which names the page, or a script of .ci
    <!-- file: NAME -->                      it is the text of a file
    <!-- file: NAME replaces "A" by "B" -->  a command, before which a file is edited
    <!-- exits N -->                         a command that ends with N

Whatever has no such line is run by bash, in a folder that the blocks of one page share.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from refengine.source_tree import ROOT

BLOCK = re.compile(r"(?:^ *<!-- ([^\n]+) -->\n)?^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.M | re.S)
PAGES = ["README.md", *(file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "docs").rglob("*.md")))]
SHELLS = ("sh", "console")


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
        known = above.startswith(("run by ", "file: ", "exits "))
        assert known or (not above and language in SHELLS), f"{page}: nothing runs\n{text}"
        if above.startswith("run by "):
            runner = ROOT / above.removeprefix("run by ")
            assert runner.is_file(), f"{page}: there is no {runner}"
            assert runner.parent.name == ".ci" or Path(page).name in runner.read_text()


@pytest.mark.parametrize("page", [page for page in PAGES if any(not b[0].startswith("run by ") for b in blocks(page))])
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
        if above.startswith("run by "):
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
