"""What the theorems of rocq/ assume, read from their text: every hypothesis and premise, and where each is applied.

A theorem assumes what stands above it in open sections as `Hypothesis`, and its own premises. Standard library only.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from refengine.selfcheck.claims.coq_text import SOURCES, STATEMENTS, blank_comments, listed, sentences

INSTANCES = (
    *("Instances", "LoopInstances", "FloatInstances", "EndToEndInstances", "RunningInstances", "Vacuity"),
    *("BeyondInstances", "EntropyInstances", "WordInstances"),
)

CLOSED_BY = {"(": ")", "[": "]", "{": "}", "forall": ",", "exists": ",", "exists2": ",", "fun": "=>", "let": "in"} | {
    "match": "end"
}


@dataclass(frozen=True)
class Drop:
    """One hypothesis to be replaced: where it stands in the text, and of what it is a hypothesis."""

    file: str
    owner: str
    text: str
    start: int
    end: int
    nth: int = 0

    def key(self) -> str:
        again = f" ({self.nth + 1})" if self.nth else ""
        return f"{self.file}.{self.owner}: {' '.join(self.text.split())}{again}"


def drops(file: Path) -> Iterator[Drop]:
    """Every hypothesis and premise of one file, in the order of the text."""
    text = file.read_text()
    code = blank_comments(text)
    for found in re.finditer(r"^Hypothesis ([\w']+) :\s", code, re.M):
        end = found.end() + sentence_end(code[found.end() :])
        yield Drop(file.stem, found[1], text[found.end() : end], found.end(), end)
    for name, start, end in premises_of(code, "Theorem|Corollary"):
        yield Drop(file.stem, name, text[start:end], start, end)


def premises_of(code: str, words: str) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of every premise of every statement that one of these words begins."""
    for found in re.finditer(rf"^(?:{words}) ([\w']+)", code, re.M):
        begin = found.end() + code[found.end() :].index(":", binder_end(code[found.end() :])) + 1
        end = begin + sentence_end(code[begin:])
        yield from ((found[1], begin + start, begin + stop) for start, stop in premises(code[begin:end]))


def sentence_end(code: str) -> int:
    """Where the sentence ends: a full stop before white space."""
    found = re.search(r"\.(?=\s)", code)
    assert found is not None
    return found.start()


def binder_end(code: str) -> int:
    """Where the colon of a statement is looked for: after the last binder in parentheses."""
    depth = 0
    for at, letter in enumerate(code):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == ":" and depth == 0:
            return at
    return 0


def premises(statement: str) -> Iterator[tuple[int, int]]:
    """The parts before a top-level arrow, without quantifiers and `let`s in front of them."""
    inside, start = list[str](), 0  # what closes whatever is open: the arrow of a binder's type is no premise's
    for token in re.finditer(r"\\?[\w']+|<?->|=>|/\\|\S", statement):
        if token[0] in CLOSED_BY:
            inside.append(CLOSED_BY[token[0]])
        elif inside and token[0] == inside[-1]:
            inside.pop()
            start = token.end() if not inside and token[0] in (",", "in") else start
        elif not inside and token[0] == "/\\":
            start = token.end()
        elif not inside and token[0] == "->":
            yield start, token.start()
            start = token.end()


def files() -> list[Path]:
    return [SOURCES / f"{name}.v" for name in listed()]


def every() -> list[Drop]:
    found = [drop for file in files() for drop in drops(file)]
    # Two sections of one file may state the same hypothesis under the same name.
    return [replace(d, nth=sum(e.key() == d.key() for e in found[:i])) for i, d in enumerate(found)]


def theorems() -> list[str]:
    """`File.name` of every theorem, those aside that stand among the instances."""
    found = [
        (file, sentence) for file in files() if file.stem not in INSTANCES for sentence in sentences(file.read_text())
    ]
    return [f"{file.stem}.{sentence.name()}" for file, sentence in found if sentence.word() in ("Theorem", "Corollary")]


def assuming(file: Path) -> Iterator[str]:
    """The theorems of a file that stand below a `Hypothesis` of an open section or have premises of their own."""
    code, words = blank_comments(file.read_text()), ("Theorem", "Corollary")
    own, open_sections = {name for name, _, _ in premises_of(code, "|".join(words))}, [False]
    for line in code.splitlines():
        word, _, rest = line.partition(" ")
        if word == "Section":
            open_sections.append(False)
        elif word == "End" and len(open_sections) > 1:
            open_sections.pop()
        elif word == "Hypothesis":
            open_sections[-1] = True
        elif word in words:
            name = re.split(r"[^\w']", rest)[0]
            if any(open_sections) or name in own:
                yield name


def named_by(roots: Collection[str]) -> set[str]:
    """The words that stand in the proofs of these statements, in the proofs of what is named there, and so on."""
    scripts: dict[str, set[str]] = {}
    for file in files():
        name = ""
        for sentence in sentences(file.read_text()):
            name = sentence.name() if sentence.word() in (*STATEMENTS, "Definition", "Fixpoint") else name
            scripts.setdefault(name, set()).update(re.findall(r"[\w']+", sentence.text))
    found, todo = set[str](), {*roots}
    while todo:
        found |= todo
        todo = set().union(*(scripts.get(name, set()) for name in todo)) - found
    return found


def unapplied() -> list[str]:
    """Theorems with hypotheses that no instance names, and instances that assume something themselves.

    Whether they are applied there, the gate reads in Coq's terms (`gate.applied`); this needs no prover.
    """
    codes = [blank_comments((SOURCES / f"{name}.v").read_text()) for name in INSTANCES]
    applied = {word for code in codes for word in re.findall(r"[\w']+", code)}
    theorems = [(f.stem, name) for f in files() if f.stem not in INSTANCES for name in assuming(f)]
    idle = [
        f"{file}.{name} is named in no file of instances ({', '.join(INSTANCES)})"
        for file, name in theorems
        if name not in applied
    ]
    return idle + [f"{name} assumes" for code in codes for name, _, _ in premises_of(code, "Example")]
