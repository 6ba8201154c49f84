"""Which mistakes in a rule the bridge sees: a claim about a rule is linked when none of them passes unseen.

Every mutant of every rule, exact and batched, is held to Coq's laws on record (`checks.py`), and what stands there to
the mutation run's own checks and tests: what dyadic rows cannot show. A rule with a mutant that
all of them let pass is not tied to its theorems: every claim that rests on it is shown as unlinked, unless
`survivors.toml` says why that mutant is the same rule.

`python -m refengine.selfcheck.claims.mutants_of_rules` runs them all (minutes) and writes `proofs/links.json`; a rule
that has changed since is shown as stale.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from refengine.bugs.mutation.mutants import Mutant, mutants
from refengine.bugs.mutation.record import explained
from refengine.bugs.mutation.run import Fate, fate
from refengine.bugs.mutation.run import run as held_to_everything
from refengine.bugs.process.pool import Job, Servers
from refengine.selfcheck.claims.chains import CHAINS, files
from refengine.source_edits.imports import imported
from refengine.source_edits.loader import source_path
from refengine.source_tree import PROOFS

COMMAND = "python -m refengine.selfcheck.claims.mutants_of_rules"
RESULT, LAWS = PROOFS / "links.json", PROOFS / "bridge.json"
SECONDS = 60.0  # processor time of one check of one mutant; unedited source takes two to ten


def subjects() -> list[str]:
    """Every file of every chain, once; the exact text first."""
    return sorted({file for chain in CHAINS for file in files(chain)}, key=lambda file: (".engine." in file, file))


@cache
def digest(module: str) -> str:
    """Of everything that a rule runs through, rows, coins and chance too, and of the laws that it is held to."""
    laws = json.dumps(json.loads(LAWS.read_text())["instances"])
    texts = [source_path(name).read_bytes() for name in sorted(imported(module))]
    return hashlib.sha256(b"".join(texts) + laws.encode()).hexdigest()


def run(servers: Servers, chosen: Sequence[Mutant]) -> list[Fate]:
    """What became of each mutant under the bridge and, where it stands, under what the mutation run holds it to.

    A crash is as red as a difference.
    """
    answers = servers.run([job(m, (f"bridge:{text_of(m.module)}",)) for m in chosen])
    fates = [fate(mutant, answer) for mutant, answer in zip(chosen, answers, strict=True)]
    standing = [i for i, f in enumerate(fates) if f.outcome == "survived" and not explained(f.mutant.key())]
    for i, later in zip(standing, held_to_everything(servers, [chosen[i] for i in standing]), strict=True):
        fates[i] = later
    return fates


def job(mutant: Mutant, checks: tuple[str, ...]) -> Job:
    return Job(f"{mutant.module}:{mutant.number}", {mutant.module: mutant.source}, checks, first=True, seconds=SECONDS)


def text_of(module: str) -> str:
    """ "exact" or "engine"."""
    return module.split(".")[1]


def summary(module: str, fates: Iterable[Fate]) -> dict[str, Any]:
    """One file's entry of the committed result."""
    every = list(fates)
    standing = [f.mutant for f in every if f.outcome == "survived"]
    return {
        "digest": digest(module),
        "mutants": len(every),
        "equivalent": sum(explained(m.key()) for m in standing),
        "survivors": [list(m.key()[1:]) for m in standing if not explained(m.key())],
        "standing": [list(m.key()[1:]) for m in standing],
    }


def committed() -> dict[str, Any]:
    """The committed run by file; empty where there is none, as outside the source tree."""
    result: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    return result


@cache
def status(chain: str) -> str:
    """One line: "linked" with how many mutants fell, or "unlinked" or "stale" and why."""
    result = committed()
    for module in files(chain):
        entry = result.get(module)
        if entry is None or entry["digest"] != digest(module):
            return f"stale: {module} or what it runs through has changed since its mutants were run (run: {COMMAND})"
        if entry["survivors"]:
            line, change = entry["survivors"][0]
            return f"unlinked: {module} with {change} in `{line}` has Coq's laws all the same"
    fallen = sum(result[module]["mutants"] - result[module]["equivalent"] for module in files(chain))
    return f"linked: {fallen} mutants fall"


def sample(count: int, seed: int) -> list[Mutant]:
    """A seeded choice of mutants that fell in the committed run, their files unchanged since."""
    fresh = {m: entry for m, entry in committed().items() if entry["digest"] == digest(m)}
    fallen = [
        mutant
        for module, entry in fresh.items()
        for mutant in mutants(module)
        if list(mutant.key()[1:]) not in entry["standing"] and not explained(mutant.key())
    ]
    return random.Random(seed).sample(fallen, min(count, len(fallen)))


def main() -> int:
    """Run every mutant, or those of the files named; exit code 1 where a claim is unlinked."""
    chosen, result = sys.argv[1:] or subjects(), committed()
    with Servers() as servers:
        for number, module in enumerate(chosen, 1):
            result[module] = summary(module, run(servers, mutants(module)))
            print(f"[{number}/{len(chosen)}] {module} {result[module]['survivors']}", file=sys.stderr, flush=True)
            RESULT.write_text(json.dumps({m: result[m] for m in subjects() if m in result}, indent=1) + "\n")
    lines = {chain: status(chain) for chain in CHAINS}
    print("\n".join(f"{chain}: {line}" for chain, line in lines.items()))
    return int(any(not line.startswith("linked") for line in lines.values()))


if __name__ == "__main__":
    sys.exit(main())
