"""The text of proofs/rocq as Coq reads it: which files count, their sentences, and what they state.

A `.v` file counts if `_CoqProject` lists it: no other one is compiled. Comments nest and strings hide both comments and
full stops, as in Coq's own lexer; `make prove` holds the sentences found here to those that coqc saw. The standard
library alone: `make prove` needs no environment.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from refengine.source_tree import PROOFS

SOURCES = PROOFS / "rocq"
GRANTED = PROOFS / "gate" / "granted.toml"
TOKEN = re.compile(r'\(\*|\*\)|"[^"]*"|[^(*")]+|.', re.S)
ALONE = re.compile(r"(?:\d+\s*:\s*)?\{|\}|-+|\++|\*+")  # bullets and braces are sentences without a full stop
STATEMENTS = ("Theorem", "Corollary", "Lemma", "Example")


@dataclass(frozen=True)
class Sentence:
    """One sentence: where it starts and ends in the file, and its words with single spaces, comments left out."""

    start: int
    end: int
    text: str

    def word(self) -> str:
        return self.text.split()[0].rstrip(".")

    def name(self) -> str:
        """What a declaration declares; "" where nothing that reads as a name follows its word."""
        found = re.match(r"\S+ ([\w']+)", self.text)
        return found[1] if found else ""


def listed(sources: Path = SOURCES) -> list[str]:
    """The files that are compiled, in order, without `.v`."""
    return [line[:-2] for line in (sources / "_CoqProject").read_text().split() if line.endswith(".v")]


def blank_comments(text: str, strings: bool = False) -> str:
    """Comments as spaces, so that positions and lines stay; strings as underscores where wanted.

    Raises ValueError where a comment or a string does not end.
    """
    out, depth = [], 0
    for token in TOKEN.findall(text):
        depth += (token == "(*") - (token == "*)")
        if depth < 0 or token == '"':
            raise ValueError(f"{'a string' if token == chr(34) else 'a comment'} does not end where it seems to")
        if depth or token == "*)":
            out.append(re.sub(r"\S", " ", token))
        else:
            out.append("_" * len(token) if strings and token[0] == '"' else token)
    if depth:
        raise ValueError("a comment does not end")
    return "".join(out)


def sentences(text: str) -> list[Sentence]:
    """The sentences of a file, in order; raises ValueError where the last one has no full stop."""
    code, shape = blank_comments(text), blank_comments(text, strings=True)
    found, at = [], 0
    while start := re.compile(r"\S").search(shape, at):
        at = start.start()
        end = ALONE.match(shape, at) or re.compile(r"\.(?=\s|$)").search(shape, at)
        if end is None:
            raise ValueError(f"no full stop after {' '.join(code[at : at + 60].split())}")
        found.append(Sentence(at, end.end(), " ".join(code[at : end.end()].split())))
        at = end.end()
    return found


def stated(file: str, sources: Path = SOURCES) -> list[str]:
    """The names of what a file states, in order."""
    return [s.name() for s in sentences((sources / f"{file}.v").read_text()) if s.word() in STATEMENTS]


def axioms(theorems: Iterable[str]) -> list[str]:
    """The axioms that the files of these `File.theorem`s may use: `make prove` refuses one that uses another."""
    files = {theorem.partition(".")[0] for theorem in theorems}
    return [axiom for axiom, allowed in granted_axioms().items() if files.intersection(allowed)]


@cache
def granted_axioms() -> dict[str, list[str]]:
    return dict(tomllib.loads(GRANTED.read_text("utf-8"))["axioms"])
