"""The folder where the proofs are compiled: the listed files as they are now, and nothing that came from elsewhere.

A compiled file that a repository or an archive brings along says whatever it says. So each file that was made here is
written down with its inode and the time that the system gave it, which nobody can choose: what is not, is thrown away.
Standard library.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from refengine.selfcheck.claims.coq_text import SOURCES, listed, sentences
from refengine.source_tree import PROOFS

BUILD = PROOFS / "build" / "rocq"
MADE = BUILD.parent / "made.json"
NEEDED = "coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-flocq"
LIBRARIES = ("mathcomp/algebra", "mathcomp/algebra_tactics", "Flocq")


def clean() -> dict[str, str]:
    """The environment of every prover here: without options of Coq, OCaml or make from outside."""
    return {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR", "LANG") if key in os.environ}


def absent() -> str:
    """What is not installed, in one line that says how to install it; "" where all is there."""
    if shutil.which("coqc") is None:
        return f"not tested: coqc absent; apt-get install {NEEDED}"
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True).stdout.strip()
    for library in LIBRARIES:
        if not (Path(where) / "user-contrib" / library).is_dir():
            return f"not tested: the Coq library {library} is absent; apt-get install {NEEDED}"
    return ""


def compiled(target: str = "all", jobs: int = 1) -> str:
    """Compile the listed files, or what one of them needs; Coq's words where it refuses, "" where it does not.

    Two processes that ask at once wait for each other.
    """
    if BUILD.is_symlink():
        BUILD.unlink()
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        throw_away_strangers()
        try:
            return _compiled(target, jobs)
        finally:
            MADE.write_text(json.dumps(marks()))


def marks() -> dict[str, list[int]]:
    """What tells each file of the folder from every other one of its name."""
    found = {file.name: file.lstat() for file in BUILD.iterdir()}
    return {name: [now.st_dev, now.st_ino, now.st_ctime_ns] for name, now in found.items()}


def throw_away_strangers() -> None:
    """Whatever in the folder is not as a run here left it; a run that is killed leaves strangers."""
    try:
        known = json.loads(MADE.read_text())
    except (OSError, ValueError):
        known = {}
    for name, mark in marks().items():
        if known.get(name) != mark:
            stranger = BUILD / name
            shutil.rmtree(stranger) if stranger.is_dir() and not stranger.is_symlink() else stranger.unlink()


def _compiled(target: str, jobs: int) -> str:
    """`coqc -time` writes down where it saw each sentence begin and end (`File.v.timing`)."""
    files = listed()
    for old in BUILD.iterdir():
        if old.name.lstrip(".").split(".")[0] not in (*files, "_CoqProject", "Makefile"):
            old.unlink()
    for name in [*(f"{file}.v" for file in files), "_CoqProject"]:
        source, copy = SOURCES / name, BUILD / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
    for file in files:
        timing, made = BUILD / f"{file}.v.timing", BUILD / f"{file}.vo"
        if not timing.exists() or timing.stat().st_mtime < (BUILD / f"{file}.v").stat().st_mtime:
            made.unlink(missing_ok=True)  # compiled by someone else, who did not write down what Coq read
    for command in (
        ["coq_makefile", "-f", "_CoqProject", "-o", "Makefile.coq"],
        ["make", "-s", "-f", "Makefile.coq", f"-j{jobs}", "TIMING=1", target],
    ):
        run = subprocess.run(command, cwd=BUILD, env=clean(), capture_output=True, text=True)
        if run.returncode:
            return run.stderr + run.stdout
    return ""


def read_otherwise(file: str) -> str:
    """Where Coq saw other sentences than we do: "", or what is wrong. A tactic may print lines like coqc's, and takes
    none away: so where a sentence ends is compared too."""
    timing = BUILD / f"{file}.v.timing"
    lines = re.findall(r"^Chars (\d+) - (\d+) ", timing.read_text(), re.M) if timing.is_file() else []
    seen = [(int(start), int(end)) for start, end in lines]
    ours = [(sentence.start, sentence.end) for sentence in sentences((BUILD / f"{file}.v").read_text())]
    other = sorted({*seen} ^ {*ours})[:1]
    return "" if seen == ours else f"{file}: Coq saw other sentences than the gate, from {other or 'one told twice'}"
