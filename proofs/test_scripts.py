"""Proof scripts say on the way what they have reached: no long stretch of tactics without an intermediate statement.

A reader of a proof gets its statement and, from then on, only what the script names. So more than ten lines on end that
state nothing (`have name : ...`, `assert (name : ...)`, `suff`, `transitivity`, a named term) are too many.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, blank_comments, listed
from refengine.source_tree import PROOFS, ROOT

MOST = 10
BEGINS = re.compile(rf"\s*(?:{'|'.join(STATEMENTS)}|Definition|Instance|Let) ([\w']+)")
NAMED = r"\b(?:have|suff|assert|enough)\b[^.]*?\b\w[\w' ]*\s*(?::=|:)"
STATES = re.compile(rf"{NAMED}|\b(?:transitivity|replace|pose|set)\b")


def stretches(text: str) -> dict[str, int]:
    """The longest run of lines of each script that state nothing, by the name of what is proved."""
    longest, name, run = dict[str, int](), "", -1  # -1: outside of a script
    for line in blank_comments(text).splitlines():
        if run < 0 and (begins := BEGINS.match(line)):
            name = begins[1]
        if line.startswith("Proof."):
            run = 0
        if run >= 0 and line.strip():
            run = 0 if STATES.search(line) else run + 1
            longest[name] = max(longest.get(name, 0), run)
        if re.search(r"\b(?:Qed|Defined)\.\s*$", line):
            run = -1
    return longest


def test_scripts_state_what_they_reach() -> None:
    """Kills a golfed proof."""
    texts = {file: (SOURCES / f"{file}.v").read_text() for file in listed()}
    every = {f"{file}.{name}": run for file, text in texts.items() for name, run in stretches(text).items()}
    assert len(every) > 400
    assert {name: run for name, run in every.items() if run > MOST} == {}


@pytest.mark.parametrize(
    ("script", "run"),
    [
        ("Proof. by []. Qed.", 1),
        ("Proof.\nmove=> x.\nby rewrite e.\nQed.", 4),
        ("Proof.\nmove=> x.\n(* have e : x = y. *)\nhave e : x = y by [].\nby rewrite e.\nQed.", 2),
        ("Proof.\nhave [a b] := e.\nassert (c : d).\ndone.\nQed.", 2),
    ],
)
def test_what_counts_as_a_statement(script: str, run: int) -> None:
    """Kills a count that takes a comment for a statement, or a destructured term, or that misses the ends."""
    assert stretches(f"Lemma one : True.\n{script}\n") == {"one": run}


STEPS = ["first", "translate", "gate", "bridge", "hypotheses"]


@pytest.mark.parametrize("fails", [*STEPS, None])
def test_every_step_of_the_proofs_decides(fails: str | None, tmp_path: Path) -> None:
    """Kills: a step that is left out, or whose failure is not one of the whole."""
    stub, asked = tmp_path / "python3", tmp_path / "asked"
    step = 'case "$*" in *gate/first.py) step=first;; *) step=${2#proofs.};; esac'
    stub.write_text(f'#!/bin/sh\n{step}\necho $step >> {shlex.quote(str(asked))}\ntest $step != "{fails}"\n')
    stub.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", PROOFS / "check.sh"], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    ran = STEPS[: STEPS.index(fails) + 1] if fails else STEPS
    assert asked.read_text().split() == ran
    assert (done.returncode == 0, "proved" in done.stdout) == (fails is None, fails is None)


def test_make_prove_hands_on_nothing_of_the_shell_that_asks(tmp_path: Path) -> None:
    """Kills: a file that bash reads first, a function in the place of a command, a user's start-up file of Python."""
    lines = subprocess.run(["make", "-n", "prove"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    joined = [line for line in lines.replace("\\\n", " ").splitlines() if "check.sh" in line or "pytest" in line]
    assert len(joined) == 2
    hostile = {
        "BASH_ENV": str(tmp_path / "ends"),
        "BASH_FUNC_python3%%": "() { :; }",
        "PYTHONUSERBASE": str(tmp_path),
        "PYTEST_ADDOPTS": "-k nothing",
        "MAKEFILES": str(tmp_path / "ends"),
    }
    for line in joined:
        before = re.split(r"bash |\S+python ", line)[0]
        told = subprocess.run(
            ["sh", "-c", f"{before} /usr/bin/env"],
            env={**os.environ, **hostile},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = {entry.partition("=")[0] for entry in told.splitlines()}
        assert names == {
            "PATH",
            "HOME",
            "TMPDIR",
            "LANG",
            "JOBS",
            "PYTHONNOUSERSITE",
            "PYTHONHASHSEED",
            "OMP_NUM_THREADS",
        }


def test_every_test_of_the_proofs_is_run_by_some_command() -> None:
    """Kills: tests that neither `make test` nor `make prove` chooses, in CI too. `stat` is of other folders."""
    makefile, in_ci = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    by_itself, whole, proves = re.findall(r'-m "([^"]*)"', makefile)
    assert by_itself == whole == "$(TESTS)"
    assert "TESTS=" not in in_ci
    (tests,) = re.findall(r"^TESTS +:= (.*)$", makefile, re.M)
    for marks in (set[str](), {"long"}, {"coq"}, {"text"}, {"long", "coq"}, {"long", "text"}):
        chosen, proved = (
            Expression.compile(text).evaluate(lambda name, **_: name in marks)  # noqa: B023
            for text in (tests, proves)
        )
        by_default = "long" not in marks  # which `conftest.py` leaves out where nothing names it
        assert (chosen and by_default) or proved, marks
        assert proved or not marks, marks
    assert (PROOFS / "check.sh").relative_to(ROOT).as_posix() in (ROOT / "Makefile").read_text()
