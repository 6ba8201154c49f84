"""The findings on record: what the referee said of itself, shown while nothing that it was computed from has changed.

A report runs again whatever is stale, and a sample of what is not; what comes out otherwise than recorded is a finding.
`python -m refengine.selfcheck.recorded` runs whatever is stale and commits it, step by step; it resumes.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec

import msgspec

from refengine.jobs.steps import Performed, perform, played
from refengine.report.canonical import plain
from refengine.report.finding import Finding, Recipe
from refengine.report.report import environment
from refengine.report.rerun import compare
from refengine.report.step import Step
from refengine.report.terminal import Progress
from refengine.selfcheck.steps import steps
from refengine.source_edits.committed import Committed
from refengine.source_tree import RESULTS

COMMAND = "make records"
SAMPLE = 12  # steps that every report runs again
ON_RECORD, STALE, AGAIN, OTHERWISE = "on record", "stale, run", "run again as recorded", "run again, not as recorded"
PRELOAD = ("refengine.selfcheck.drafters.battery", "refengine.bugs.kill_matrix")


@cache
def _steps() -> dict[str, Step]:
    return {step.name: step for step in steps()}


def _digest(name: str) -> str:
    step = _steps()[name]
    assert step.digest is not None, f"{name} is made each time anew"
    return step.digest()


def _keys() -> list[str]:
    return [name for name, step in _steps().items() if step.digest]


RECORD = Committed(RESULTS / "findings.json", _digest, COMMAND, _keys)


def settle(step: Step, again: frozenset[str] = frozenset()) -> Performed:
    """The findings of a step: those on record where they are fresh, else made now; those in `again` are compared.

    What is within its tolerance is shown as recorded, so that two reports of one commit have the same bytes.
    """
    if step.digest is None or step.name not in _steps():
        return perform(step)
    entry = RECORD.fresh(step.name)
    if entry is None:
        return perform(step)[0], STALE
    recorded = msgspec.convert(entry["findings"], list[Finding])
    if step.name not in again:
        return recorded, ON_RECORD
    made = list(step.run())
    lines = differences(recorded, made)
    return (made, f"{OTHERWISE}: {lines[0]}") if lines else (recorded, AGAIN)


def differences(recorded: Iterable[Finding], made: Iterable[Finding]) -> list[str]:
    """What came out otherwise, one line each."""
    old, new = ({finding.id: finding for finding in findings} for findings in (recorded, made))
    lines = [f"{name} is on one side only" for name in old.keys() ^ new.keys()]
    return lines + [f"{name}: {line}" for name in old.keys() & new.keys() for line in compare(old[name], new[name])]


def sample(text: str) -> frozenset[str]:
    """The steps that a report runs again, drawn from a text: the commit's id, so that no one chooses them. Planted bugs
    are held to test files too, which need pytest; where it is not installed they are left out of the draw."""
    tests = find_spec("pytest") is not None
    names = [name for name in _keys() if tests or not _steps()[name].place.startswith("bugs ")]
    return frozenset(random.Random(text).sample(names, min(SAMPLE, len(names))))


def summary(hows: Mapping[str, str], again: Iterable[str]) -> Finding:
    """How the findings on record came through."""
    kinds = Counter(how.partition(":")[0] for how in hows.values())
    wrong = {name: how for name, how in hows.items() if how.startswith(OTHERWISE)}
    made_with = {str(entry["made with"]) for entry in RECORD.entries().values()} - {versions()}
    return Finding(
        id="records",
        subject="the committed findings of the referee about itself",
        claim="What is shown from the record comes out again.",
        source=COMMAND,
        verdict="violated" if wrong else "consistent",
        method="every finding on record is under the digest of what it was computed from; what has changed since was "
        "run again for this report, and so was a sample that the commit's id draws, which was compared",
        numbers={kind: kinds[kind] for kind in (ON_RECORD, STALE, AGAIN, OTHERWISE)},
        witness=wrong or None,
        recipe=Recipe(function=f"{__name__}:rerun", arguments={"again": sorted(again)}),
        notes=[f"made with {text}; here {versions()}" for text in sorted(made_with)],
        tables={
            "run again": {
                "step": (names := sorted(n for n, how in hows.items() if how not in ("", ON_RECORD))),
                "how": [hows[n] for n in names],
            }
        },
    )


def rerun(again: list[str]) -> list[Finding]:
    """The summary again, with the same sample."""
    chosen = frozenset(again)
    return [summary({name: settle(step, chosen)[1] for name, step in _steps().items()}, chosen)]


def versions() -> str:
    """What findings may depend on and no digest holds."""
    found = environment()
    return ", ".join(f"{name} {found[name]}" for name in ("python", "torch", "transformers"))


def main() -> None:
    """Run every step whose record is stale, in processes, and write each as it ends."""
    stale = set(RECORD.every_stale())
    with Progress("records", len(stale)) as shown:
        todo = [step for step in _steps().values() if step.name in stale]
        for step, (findings, failed), seconds in played(todo, _tried, preload=PRELOAD, begun=shown.at):
            if not failed:
                RECORD.put(step.name, {"findings": plain(findings), "made with": versions()})
            shown.finish(f"{step.name}: {failed or f'{seconds:.1f} s'}")


def _tried(step: Step) -> Performed:
    """A step that fails leaves the others to be recorded."""
    try:
        return perform(step)
    except Exception as error:
        return [], f"not recorded: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
