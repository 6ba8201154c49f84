"""The mutation run: every small mistake in the core, each loaded in a process of its own and held to the checks.

`python -m refengine.bugs.mutate` mutates every file of `exact` and `engine` and the decode loop, runs the general
checks that load the file, on what is left the property tests that import it, and writes `mutation.json`. What
survives is explained in `survivors.toml`, mutant by mutant; an explanation without a survivor is stale. Both fail.

Outcomes of a mutant: `killed` by a claim that is false; `crashed` or `hung` where no claim was false but some check
could not run to its end (told apart: a crash is no detection by name); `survived`.
"""

import argparse
import fnmatch
import hashlib
import json
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from refengine.bugs.imports import names_of
from refengine.bugs.loader import PACKAGE, source_path
from refengine.bugs.mutants import Mutant, mutants
from refengine.bugs.runner import Answer, Job, Servers, checks_that_load
from refengine.report.finding import Finding, Recipe

HERE = Path(__file__).parent
RESULT, SURVIVORS = HERE / "mutation.json", HERE / "survivors.toml"
SECONDS = 6.0  # processor time of one check; the longest takes one second on unedited source
ORDER = (
    *("chances", "measures", "policies", "modes", "rounds:law", "rounds", "loops", "lanes", "batch_rows", "logits"),
    *("twins:law", "numerics", "twins", "endings", "decoding", "network"),
)


def subjects() -> list[str]:
    """The modules that are mutated: all of exact and engine, and the decode loop."""
    files = [f for folder in ("exact", "engine") for f in sorted((PACKAGE / folder).rglob("*.py"))]
    files.append(PACKAGE / "decoder" / "loop.py")
    names = [".".join((PACKAGE.name, *f.relative_to(PACKAGE).with_suffix("").parts)) for f in files]
    return [name for name in names if not name.endswith("__init__")]


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: its outcome, and the check that decided it."""

    mutant: Mutant
    outcome: str
    by: str
    detail: str = ""


def fate(mutant: Mutant, answers: Sequence[Answer]) -> Fate:
    """The first false claim decides; failing that, the first crash or hang."""
    for outcome, word in (("violated", "killed"), ("hung", "hung"), ("crashed", "crashed")):
        for answer in answers:
            if answer.outcome == outcome:
                return Fate(mutant, word, answer.check, answer.detail)
    return Fate(mutant, "survived", "")


def run(servers: Servers, chosen: Sequence[Mutant], done: Callable[[], None] = lambda: None) -> list[Fate]:
    """The general checks on every mutant, then the property tests on those that stand without an explanation."""
    answers = servers.run([job(m, concerned(m.module)) for m in chosen], lambda _: done())
    fates = [fate(m, a) for m, a in zip(chosen, answers, strict=True)]
    standing = [i for i, f in enumerate(fates) if f.outcome == "survived" and not explained(*f.mutant.key()[:3])]
    tests = servers.run([job(fates[i].mutant, property_tests(fates[i].mutant.module)) for i in standing])
    for i, later in zip(standing, tests, strict=True):
        fates[i] = fate(fates[i].mutant, later)
    return fates


def job(mutant: Mutant, checks: tuple[str, ...]) -> Job:
    return Job(f"{mutant.module}:{mutant.number}", {mutant.module: mutant.source}, checks, first=True, seconds=SECONDS)


@cache
def concerned(module: str) -> tuple[str, ...]:
    """The checks that load the module, cheap ones first; one fixed order, so that the result is reproducible."""
    return tuple(sorted(checks_that_load((module,)), key=lambda c: (rank(c), c)))


def rank(check: str) -> int:
    return next(place for place, name in enumerate(ORDER) if name in (check, check.split(":")[0]))


@cache
def property_tests(module: str) -> tuple[str, ...]:
    """The test files that import the module themselves or through a helper beside them; not the tests of this run."""
    folder = PACKAGE.parent / "properties"
    tests = [f for f in sorted(folder.glob("test_*.py")) if not f.name.startswith(("test_bugs", "test_audit"))]
    return tuple(f"pytest:properties/{f.name}" for f in tests if module in names_of(f))


# --- the committed result --------------------------------------------------------------------------------------------


def summary(fates: Iterable[Fate]) -> dict[str, Any]:
    """The result as it is committed: per file the counts and the digest of its text, then every survivor."""
    by_file: dict[str, Counter[str]] = {}
    kills: Counter[str] = Counter()
    standing = []
    for f in fates:
        by_file.setdefault(f.mutant.module, Counter())[f.outcome] += 1
        kills[f.by] += f.outcome == "killed"
        if f.outcome == "survived":
            standing.append(dict(zip(("module", "line", "change", "nth"), f.mutant.key(), strict=True)))
    files = {m: {"digest": digest(m), **dict(sorted(c.items()))} for m, c in by_file.items()}
    return {"files": files, "kills": dict(sorted(kills.items())), "survivors": standing}


def digest(module: str) -> str:
    return hashlib.sha256(source_path(module).read_bytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Explanation:
    """Why mutants survive: in these lines of modules of this pattern, these changes."""

    module: str
    lines: tuple[str, ...]
    changes: tuple[str, ...]
    why: str

    def covers(self, module: str, line: str, change: str) -> bool:
        return fnmatch.fnmatch(module, self.module) and line in self.lines and change in self.changes

    def stale(self, standing: Iterable[tuple[str, str, str]]) -> list[str]:
        """The lines and changes of this explanation that no survivor needs."""
        covered = [key for key in standing if self.covers(*key)]
        lines, changes = {key[1] for key in covered}, {key[2] for key in covered}
        return [text for text in (*self.lines, *self.changes) if text not in lines | changes]


@cache
def explanations() -> tuple[Explanation, ...]:
    """The committed reasons."""
    entries = tomllib.loads(SURVIVORS.read_text()).get("survivor", [])
    return tuple(Explanation(e["module"], tuple(e["lines"]), tuple(e["changes"]), e["why"]) for e in entries)


def explained(module: str, line: str, change: str) -> bool:
    return any(e.covers(module, line, change) for e in explanations())


def doubts(result: dict[str, Any]) -> list[str]:
    """Survivors without an explanation; and, where every file was run, what explains no survivor."""
    standing = [(s["module"], s["line"], s["change"]) for s in result["survivors"]]
    open_ones = [f"survived: {key[0]}: {key[2]} in: {key[1]}" for key in standing if not explained(*key)]
    if set(subjects()) - result["files"].keys():
        return open_ones
    return open_ones + [f"stale explanation: {e.module}: {text}" for e in explanations() for text in e.stale(standing)]


def committed() -> list[Finding]:
    """The committed run as a finding; not tested where a mutated file has changed since."""
    result = json.loads(RESULT.read_text())
    counts = sum((Counter({k: n for k, n in c.items() if k != "digest"}) for c in result["files"].values()), Counter())
    changed = [m for m in subjects() if result["files"].get(m, {}).get("digest") != digest(m)]
    lines = doubts(result)
    return [
        Finding(
            id="bugs/mutation",
            subject=f"{len(subjects())} files of refengine.exact, refengine.engine and the decode loop",
            claim="No small mistake in the core survives the checks without an explanation.",
            source="refengine.bugs.survivors",
            verdict="not tested" if changed else "violated" if lines else "consistent",
            reason=f"changed since the committed run: {', '.join(changed)} (run: make mutation)" if changed else "",
            method=f"{sum(counts.values())} mutants, each loaded in a process of its own",
            numbers={word: counts[word] for word in ("killed", "crashed", "hung", "survived")},
            witness={"in doubt": lines} if lines and not changed else None,
            recipe=Recipe(function="refengine.bugs.mutate:committed"),
            tables={"mutants": table(result)},
        )
    ]


def table(result: dict[str, Any]) -> dict[str, list[Any]]:
    """Outcomes by file."""
    words = ("killed", "crashed", "hung", "survived")
    files = result["files"]
    return {"file": list(files), **{word: [counts.get(word, 0) for counts in files.values()] for word in words}}


def sample(count: int, seed: int) -> list[Mutant]:
    """A seeded choice of mutants that the committed run killed, in files unchanged since: each of them must fall again.

    Fewer than `count`, or none, where no file is as the committed run saw it.
    """
    result = json.loads(RESULT.read_text())
    survived = {(s["module"], s["line"], s["change"], s["nth"]) for s in result["survivors"]}
    covered = [m for m in subjects() if result["files"].get(m, {}).get("digest") == digest(m)]
    killed = [mutant for module in covered for mutant in mutants(module) if mutant.key() not in survived]
    return random.Random(seed).sample(killed, min(count, len(killed)))


def main() -> int:
    """Run, merge into the committed result, print what is in doubt; exit code 1 where anything is."""
    parser = argparse.ArgumentParser(description="Mutate the core and list what survives.")
    parser.add_argument("modules", nargs="*", help="only these, for example refengine.exact.row (default: all)")
    chosen = parser.parse_args().modules or subjects()
    unknown = [m for m in chosen if m not in subjects()]
    if unknown:
        print(f"{unknown[0]} is not mutated: one of {', '.join(subjects())}", file=sys.stderr)
        return 2
    result: dict[str, Any] = {"files": {}, "kills": {}, "survivors": []}
    with Servers() as servers:
        for number, module in enumerate(chosen, 1):
            part = summary(run(servers, mutants(module)))
            print(f"[{number}/{len(chosen)}] {module} {part['files'].get(module, {})}", file=sys.stderr, flush=True)
            result = merged(result, part)
    if len(chosen) == len(subjects()):
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    lines = doubts(result)
    print("\n".join(lines) or "no survivor is unexplained, no explanation is stale")
    return int(bool(lines))


def merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    kills = Counter(a["kills"])
    kills.update(b["kills"])
    return {
        "files": {**a["files"], **b["files"]},
        "kills": dict(sorted(kills.items())),
        "survivors": [*a["survivors"], *b["survivors"]],
    }


if __name__ == "__main__":
    sys.exit(main())
