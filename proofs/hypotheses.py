"""Take the hypotheses of the theorems away, one at a time: every one of them must be missed.

A `Hypothesis` of a section, or a premise of a theorem, is replaced by `True`, so that names and introductions still
fit, and the file is compiled again. A file that still compiles never used that hypothesis: the theorem says less than
it could. Files are compiled beside the compiled ones that they import. Standard library only.

Usage: python3 hypotheses.py, to try all of them (half an hour); python3 hypotheses.py --sample N, to try N of them
(part of `make prove`). Both first hold the theorems to Instances.v and FloatInstances.v: one that has
hypotheses and is applied in neither may be about nothing.
"""

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES, BUILD = HERE / "rocq", HERE / "build" / "rocq"
SEED = 0
SECONDS = 300  # a proof that searches for longer without its hypothesis has missed it


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
    for found in re.finditer(r"^(?:Theorem|Corollary) ([\w']+)", code, re.M):
        begin = found.end() + code[found.end() :].index(":", binder_end(code[found.end() :])) + 1
        end = begin + sentence_end(code[begin:])
        for start, stop in premises(code[begin:end]):
            yield Drop(file.stem, found[1], text[begin + start : begin + stop], begin + start, begin + stop)


def blank_comments(text: str) -> str:
    """Comments as spaces, so that positions stay."""
    return re.sub(r"\(\*.*?\*\)", lambda found: " " * len(found[0]), text, flags=re.S)


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
    depth, start = 0, 0
    for at, letter in enumerate(statement):
        depth += (letter in "([{") - (letter in ")]}")
        if depth:
            continue
        if letter == "," and statement[start:at].split()[:1] == ["forall"]:
            start = at + 1
        elif statement.startswith(" in ", at) or statement.startswith(" in\n", at):
            start = at + 4
        elif statement.startswith("/\\", at):
            start = at + 2
        elif statement.startswith("->", at) and statement[at - 1] != "<":
            yield start, at
            start = at + 2


def misses(drop: Drop) -> bool:
    """Whether the file does not compile without it."""
    text = (SOURCES / f"{drop.file}.v").read_text()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{drop.file}.v"
        file.write_text(f"{text[: drop.start]} True {text[drop.end :]}")
        command = ["coqc", "-w", "none", "-Q", str(BUILD), "Proofs", str(file)]
        try:
            return subprocess.run(command, capture_output=True, timeout=SECONDS).returncode != 0
        except subprocess.TimeoutExpired:
            return True


def files() -> list[Path]:
    return [SOURCES / line for line in (SOURCES / "_CoqProject").read_text().split() if line.endswith(".v")]


def every() -> list[Drop]:
    found = [drop for file in files() for drop in drops(file)]
    # Two sections of one file may state the same hypothesis under the same name.
    return [replace(d, nth=sum(e.key() == d.key() for e in found[:i])) for i, d in enumerate(found)]


def assuming(file: Path) -> Iterator[str]:
    """The theorems of a file that stand below a `Hypothesis` of an open section or have premises of their own."""
    code = blank_comments(file.read_text())
    own, open_sections = {drop.owner for drop in drops(file)}, [False]
    for line in code.splitlines():
        word, _, rest = line.partition(" ")
        if word == "Section":
            open_sections.append(False)
        elif word == "End":
            open_sections.pop()
        elif word == "Hypothesis":
            open_sections[-1] = True
        elif word in ("Theorem", "Corollary"):
            name = re.split(r"[^\w']", rest)[0]
            if any(open_sections) or name in own:
                yield name


def unapplied() -> list[str]:
    """Theorems with hypotheses that no instance file applies."""
    names = ("Instances", "FloatInstances", "Vacuity")
    instances = "".join((SOURCES / f"{name}.v").read_text() for name in names)
    applied = set(re.findall(r"[\w']+", blank_comments(instances)))
    return [f"{f.stem}.{name}" for f in files() if f.stem not in names for name in assuming(f) if name not in applied]


def main() -> int:
    idle = [f"{name} is never applied" for name in unapplied()]
    chosen = every()
    if sys.argv[1:2] == ["--sample"]:
        chosen = random.Random(SEED).sample(chosen, int(sys.argv[2]))
    for number, drop in enumerate(chosen, 1):
        missed = misses(drop)
        print(f"[{number}/{len(chosen)}] {'missed' if missed else 'NOT MISSED'}: {drop.key()}", flush=True)
        idle += [] if missed else [f"superfluous: {drop.key()}"]
    print("violated: " + "; ".join(idle) if idle else f"{len(chosen)} hypotheses taken away, each of them missed")
    return int(bool(idle))


if __name__ == "__main__":
    sys.exit(main())
