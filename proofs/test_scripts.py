"""Proof scripts say on the way what they have reached: no long stretch of tactics without an intermediate statement.

A reader of a proof gets its statement and, from then on, only what the script names. So more than ten lines on end that
state nothing (`have name : ...`, `assert (name : ...)`, `suff`, `transitivity`, a named term) are too many.
"""

import re

import pytest

from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, blank_comments, listed

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
