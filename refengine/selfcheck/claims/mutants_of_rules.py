"""Which mistakes in a rule the bridge sees: a claim about a rule is linked when none of them passes unseen.

Every mutant of every rule, exact and batched, is held to Coq's laws on record (`checks.py`), and what stands there to
the mutation run's own checks and tests: what dyadic rows cannot show. A rule with a mutant that
all of them let pass is not tied to its theorems: every claim that rests on it is shown as unlinked, unless
`survivors.toml` says why that mutant is the same rule.

`python -m refengine.selfcheck.claims.mutants_of_rules` runs those of every file that is stale (minutes for all) and
writes `proofs/links.json`.
"""

import json
import random
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

from refengine.bugs.mutation.mutants import Mutant, mutants
from refengine.bugs.mutation.record import explained
from refengine.bugs.mutation.run import Fate, fate
from refengine.bugs.mutation.run import run as held_to_everything
from refengine.bugs.process.pool import Job, run_jobs
from refengine.selfcheck.claims import checks, coq_bridge
from refengine.selfcheck.claims.chains import CHAINS, files
from refengine.source_edits.committed import Committed, digest, module_digest
from refengine.source_tree import PROOFS

COMMAND = "python -m refengine.selfcheck.claims.mutants_of_rules"
CHECKS = {text: f"{checks.__name__}:{text}" for text in ("exact", "engine")}
SECONDS = 60.0  # processor time of one check of one mutant; unedited source takes two to ten


def subjects() -> list[str]:
    """Every file of every chain, once; the exact text first."""
    return sorted({file for chain in CHAINS for file in files(chain)}, key=lambda file: (".engine." in file, file))


@cache
def digest_of(module: str) -> str:
    """Of everything that a rule runs through, rows, coins and chance too, and of the laws that it is held to."""
    return digest(module_digest(module), json.dumps(coq_bridge.recorded(), sort_keys=True))


RECORD = Committed(PROOFS / "links.json", digest_of, COMMAND, subjects)


def run(chosen: Sequence[Mutant], at_once: int = 2) -> list[Fate]:
    """What became of each mutant under the bridge and, where it stands, under what the mutation run holds it to.

    A crash is as red as a difference, so the unedited source is asked first: raises RuntimeError where it is red.
    """
    unedited_holds(at_once)
    answers = run_jobs([job(m, (CHECKS[text_of(m.module)],)) for m in chosen], at_once)
    fates = [fate(mutant, answer) for mutant, answer in zip(chosen, answers, strict=True)]
    standing = [i for i, f in enumerate(fates) if f.outcome == "survived" and not explained(f.mutant.key())]
    for i, later in zip(standing, held_to_everything([chosen[i] for i in standing], at_once), strict=True):
        fates[i] = later
    return fates


@cache
def unedited_holds(at_once: int) -> None:
    """Raises RuntimeError where it does not: then nothing that falls says anything."""
    jobs = [Job(text, {}, (check,), first=True, seconds=SECONDS) for text, check in CHECKS.items()]
    for answer in chain.from_iterable(run_jobs(jobs, at_once)):
        if answer.outcome != "holds":
            raise RuntimeError(f"{answer.check} on unedited source: {answer.outcome}, {answer.detail}")


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
        "mutants": len(every),
        "equivalent": sum(explained(m.key()) for m in standing),
        "survivors": [list(m.key()[1:]) for m in standing if not explained(m.key())],
        "standing": [list(m.key()[1:]) for m in standing],
    }


@cache
def status(chain: str) -> str:
    """One line: "linked" with how many mutants fell, or "unlinked" or "stale" and why."""
    result = RECORD.entries()
    for module in files(chain):
        if why := RECORD.stale(module):
            return f"stale: {why}"
        entry = result[module]
        if entry["survivors"]:
            line, change = entry["survivors"][0]
            return f"unlinked: {module} with {change} in `{line}` has Coq's laws all the same"
    fallen = sum(result[module]["mutants"] - result[module]["equivalent"] for module in files(chain))
    return f"linked: {fallen} mutants fall"


def sample(count: int, seed: int) -> list[Mutant]:
    """A seeded choice of mutants that fell in the committed run, their files unchanged since."""
    fallen = [
        mutant
        for module in subjects()
        if (entry := RECORD.fresh(module)) is not None
        for mutant in mutants(module)
        if list(mutant.key()[1:]) not in entry["standing"] and not explained(mutant.key())
    ]
    return random.Random(seed).sample(fallen, min(count, len(fallen)))


def main() -> int:
    """Run the mutants of every file that is stale, or of those named; exit code 1 where a claim is unlinked."""
    chosen = sys.argv[1:] or RECORD.every_stale()
    for number, module in enumerate(chosen, 1):
        entry = summary(module, run(mutants(module)))
        RECORD.put(module, entry)
        print(f"[{number}/{len(chosen)}] {module} {entry['survivors']}", file=sys.stderr, flush=True)
    lines = {chain: status(chain) for chain in CHAINS}
    print("\n".join(f"{chain}: {line}" for chain, line in lines.items()))
    return int(any(not line.startswith("linked") for line in lines.values()))


if __name__ == "__main__":
    sys.exit(main())
