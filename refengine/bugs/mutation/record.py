"""The committed mutation run: what became of every mutant, and why the survivors survive."""

import random
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from refengine.bugs.mutation.mutants import Mutant, mutants
from refengine.report.finding import Finding, Recipe
from refengine.source_edits.committed import Committed, digest, own_code
from refengine.source_edits.loader import source_path
from refengine.source_tree import PACKAGE

HERE = Path(__file__).parent
SURVIVORS = HERE / "survivors.toml"
LETTERS = {"killed": "k", "crashed": "c", "hung": "h", "survived": "s"}

Key: TypeAlias = tuple[str, str, str]  # module, line, change


@dataclass(frozen=True)
class Record:
    """One file as it was run: one letter per mutant in the order of the text, and how many each check killed."""

    outcomes: str
    kills: dict[str, int]

    def counts(self) -> Counter[str]:
        return Counter({word: self.outcomes.count(letter) for word, letter in LETTERS.items()})


def subjects() -> list[str]:
    """The modules that are mutated: all of exact and engine, and the decode loop.

    Not the compiled kernels: they are held to the engine bit for bit, and a mutant of them compiles for seconds.
    """
    files = [f for folder in ("exact", "engine") for f in sorted((PACKAGE / folder).rglob("*.py"))]
    files = [f for f in files if "kernels" not in f.parts]
    files.append(PACKAGE / "decoder" / "loop.py")
    names = [".".join((PACKAGE.name, *f.relative_to(PACKAGE).with_suffix("").parts)) for f in files]
    return [name for name in names if not name.endswith("__init__")]


@cache
def digest_of(module: str) -> str:
    """Of the file's text and of the mutator's: together they fix which mutants there are, and their order.

    The checks do not count; that they still kill is tested on a sample.
    """
    return digest(*(own_code(source_path(name))[0] for name in (module, mutants.__module__)))


RECORD = Committed(HERE / "mutation.json", digest_of, "make mutation", subjects)


def unchanged() -> dict[str, Record]:
    """The files that are as the committed run saw them."""
    return {m: Record(e["outcomes"], e["kills"]) for m in subjects() if (e := RECORD.fresh(m))}


def with_outcome(run: Mapping[str, Record], *words: str) -> Iterator[Mutant]:
    """The mutants of a run that came out so, in files that are as they were."""
    letters = "".join(LETTERS[word] for word in words)
    for module, record in run.items():
        yield from (m for m, letter in zip(mutants(module), record.outcomes, strict=True) if letter in letters)


def sample(count: int, seed: int) -> list[Mutant]:
    """A seeded choice of mutants that the committed run killed, in files unchanged since: each of them must fall again.

    Fewer than `count`, or none, where no file is as the committed run saw it.
    """
    killed = list(with_outcome(unchanged(), "killed"))
    return random.Random(seed).sample(killed, min(count, len(killed)))


# --- why survivors survive -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """Why mutants survive: in these modules, in each of these lines, each of these changes that the line admits."""

    modules: tuple[str, ...]
    lines: tuple[str, ...]
    changes: tuple[str, ...]
    why: str

    def covers(self, key: Key) -> bool:
        module, line, change = key
        return module in self.modules and line in self.lines and change in self.changes


@cache
def explanations() -> tuple[Explanation, ...]:
    """The committed reasons."""
    entries = tomllib.loads(SURVIVORS.read_text())["survivor"]
    return tuple(Explanation(tuple(e["modules"]), tuple(e["lines"]), tuple(e["changes"]), e["why"]) for e in entries)


def explained(key: Key) -> bool:
    return any(e.covers(key) for e in explanations())


def doubts(run: Mapping[str, Record]) -> list[str]:
    """Survivors without an explanation; explanations that cover what does not survive, or nothing at all."""
    standing = [m.key() for m in with_outcome(run, "survived")]
    fallen = [m.key() for m in with_outcome(run, "killed", "crashed", "hung")]
    seen = {key[0] for key in (*standing, *fallen)}
    lines = [f"survived: {key[0]}: {key[2]} in: {key[1]}" for key in standing if not explained(key)]
    for e in explanations():
        covered = [key for key in standing if e.covers(key)]
        used = {text for key in covered for text in key}
        lines += [f"explained and yet it falls: {k[0]}: {k[2]} in: {k[1]}" for k in fallen if e.covers(k)]
        if seen.issuperset(e.modules):
            lines += [f"explains nothing: {text}" for text in (*e.modules, *e.lines, *e.changes) if text not in used]
    return lines


# --- the finding -----------------------------------------------------------------------------------------------------


def committed() -> list[Finding]:
    """The committed run as a finding; not tested where a mutated file has changed since."""
    run, changed = unchanged(), RECORD.every_stale()
    counts = sum((record.counts() for record in run.values()), Counter())
    lines = doubts(run)
    return [
        Finding(
            id="bugs/mutation",
            subject=f"{len(subjects())} files of refengine.exact, refengine.engine and the decode loop",
            claim="No small mistake in the core survives the checks without an explanation.",
            source="refengine.bugs.survivors",
            verdict="not tested" if changed else "violated" if lines else "consistent",
            reason=f"changed since the committed run: {', '.join(changed)} (run: make mutation)" if changed else "",
            method=f"{sum(counts.values())} mutants, each loaded in a process of its own; a crash or a hang of a check "
            "is told apart from a kill",
            numbers={word: counts[word] for word in LETTERS},
            witness={"in doubt": lines} if lines and not changed else None,
            recipe=Recipe(function=f"{__name__}:committed"),
            tables={"mutants": table(run)},
        )
    ]


def table(run: Mapping[str, Record]) -> dict[str, list[Any]]:
    """Outcomes by file."""
    counts = [record.counts() for record in run.values()]
    return {"file": list(run), **{word: [c[word] for c in counts] for word in LETTERS}}
