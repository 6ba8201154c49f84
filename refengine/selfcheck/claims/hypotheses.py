"""The committed run of `proofs.hypotheses`: every hypothesis of every theorem, and the proof that fails without it.

An answer holds for the text of its file and for what the files that it imports state and define, comments, spaces and
their proof scripts aside; where that has changed since, the file's answers are stale. The standard library alone: `make
prove` needs no environment.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from refengine.selfcheck.claims.coq_text import SOURCES, blank_comments, sentences
from refengine.source_edits.committed import Committed, digest
from refengine.source_tree import PROOFS

COMMAND = "python3 -m proofs.hypotheses"


@cache
def digest_of(name: str) -> str:
    """Of a file's text and of what it can use of all that it imports; no file that is gone has the same."""
    if not (SOURCES / f"{name}.v").is_file():
        return "gone"
    code = blank_comments((SOURCES / f"{name}.v").read_text())
    return digest(" ".join(code.split()), *(stated_by(other) for other in imports(code)))


@cache
def stated_by(name: str) -> str:
    """A digest of what a file states and defines, and of what it imports. How it proves is nothing to other files."""
    text = (SOURCES / f"{name}.v").read_text()
    shown, proof = list[str](), list[str]()
    for sentence in (s.text for s in sentences(text)):
        proof = [*proof, sentence] if proof or sentence.startswith("Proof") else []
        shown += [] if proof else [sentence]
        if sentence in ("Qed.", "Defined."):
            shown += proof if sentence == "Defined." else []
            proof = []
    return digest(" ".join((*shown, *proof)), *(stated_by(other) for other in imports(blank_comments(text))))


def imports(code: str) -> list[str]:
    found = re.search(r"^From Proofs Require Import ([^.]*)\.\s", code, re.M)
    return found[1].split() if found else []


RECORD = Committed(PROOFS / "hypotheses.json", digest_of, COMMAND)


def fresh() -> dict[str, str]:
    """Hypothesis -> what fails without it, of the answers on record that still hold."""
    kept = [entry["missed_by"] for name in RECORD.entries() if (entry := RECORD.fresh(name))]
    return {key: by for answers in kept for key, by in answers.items()}


def gone() -> list[str]:
    """The answers on record that are about no file any more, one line for each file."""
    lost = [name for name in RECORD.entries() if not (SOURCES / f"{name}.v").is_file()]
    return [f"{name}.v is gone, and {RECORD.file.name} still answers for it (run: {COMMAND})" for name in lost]


def status(theorems: Sequence[str]) -> dict[str, str]:
    """One line for each file of theorems given as `File.theorem`; none for a file that assumes nothing."""
    asked, about = RECORD.entries(), dict.fromkeys(theorem.split(".")[0] for theorem in theorems)
    return {file: _line(asked[file], file) for file in about if file in asked}


def _line(entry: dict[str, Any], file: str) -> str:
    if why := RECORD.stale(file):
        return f"stale: {why}"
    idle = [key for key, by in entry["missed_by"].items() if not by]
    return f"superfluous: {idle[0]}" if idle else f"missed: each of its {len(entry['missed_by'])} hypotheses"
