"""The command line as a test calls it: in this process, or typed into a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from refengine import cli


def run(*arguments: str | Path) -> int:
    """The exit code of one command."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def shell(line: str, within: Path, before: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """One line of a shell, in a folder. before: what is typed before it."""
    command = f"{before} {sys.executable} -m refengine.cli {line}"
    environment = {**os.environ, "COLUMNS": "200", **more}
    return subprocess.run(
        ["bash", "-c", command], cwd=within, capture_output=True, text=True, env=environment, check=False
    )


def runs(process: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
