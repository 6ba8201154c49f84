"""Take the hypotheses of the theorems away, one at a time: every one of them must be missed.

A `Hypothesis` of a section, or a premise of a theorem, is replaced by `True`, so that names and introductions still
fit, and the file is compiled again. A file that still compiles never used that hypothesis: the theorem says less than
it could. Files are compiled beside the compiled ones that they import. Standard library only.

Usage: python3 hypotheses.py, to try all (long) and write hypotheses.json; python3 hypotheses.py --sample N, to try N
again that change from day to day (part of `make prove`), after checking that the record is of these sources.
"""

import datetime
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES, BUILD, RESULT = HERE / "rocq", HERE / "build" / "rocq", HERE / "hypotheses.json"
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


def every() -> list[Drop]:
    files = [SOURCES / line for line in (SOURCES / "_CoqProject").read_text().split() if line.endswith(".v")]
    found = [drop for file in files for drop in drops(file)]
    # Two sections of one file may state the same hypothesis under the same name.
    return [replace(d, nth=sum(e.key() == d.key() for e in found[:i])) for i, d in enumerate(found)]


def digest() -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.glob("*.v")))).hexdigest()


def record(done: dict[str, bool]) -> None:
    RESULT.write_text(json.dumps({"sources": digest(), "missed": done}, indent=1) + "\n")


def main() -> int:
    known = json.loads(RESULT.read_text()) if RESULT.is_file() else {"sources": "", "missed": {}}
    chosen = every()
    if sys.argv[1:2] == ["--sample"]:
        if known["missed"].keys() != {drop.key() for drop in chosen}:
            print("stale: the hypotheses have changed since they were taken away: run python3 proofs/hypotheses.py")
            return 1
        today = datetime.datetime.now(datetime.UTC).date().toordinal()
        chosen = random.Random(today).sample(chosen, int(sys.argv[2]))
    done = {}
    for number, drop in enumerate(chosen, 1):
        done[drop.key()] = misses(drop)
        print(f"[{number}/{len(chosen)}] {'missed' if done[drop.key()] else 'NOT MISSED'}: {drop.key()}", flush=True)
    if len(done) == len(every()):
        record(done)
    idle = [key for key, missed in done.items() if not missed]
    print(f"violated: superfluous: {'; '.join(idle)}" if idle else f"{len(done)} hypotheses taken away, all missed")
    return int(bool(idle))


if __name__ == "__main__":
    sys.exit(main())
