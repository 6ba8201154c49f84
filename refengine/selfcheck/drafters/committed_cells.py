"""Every exact-law cell under every policy, run beforehand: too long for the report, which shows what was found.

`python -m refengine.selfcheck.drafters.committed_cells [DRAFTER ...]` runs what `cells.json` lacks or holds stale. The
file is rewritten after every cell, so a run that is cut off goes on where it was.

The digest of a result is of the loaded drafter and target, tensor for tensor and setting for setting; of the source of
every module that they, the loop, the rule and the enumeration come from, and of what those import; of the policies and
the cell. The reader of a checkpoint does not count: what it read does. Versions of torch and transformers do not
either. A stale result is `not tested`.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from refengine.jobs.options import add_options
from refengine.jobs.steps import played
from refengine.report.finding import Finding, Quantity, Recipe
from refengine.report.step import Step
from refengine.report.terminal import Progress
from refengine.selfcheck.drafters import battery
from refengine.selfcheck.drafters.computed_from import parts_of
from refengine.selfcheck.drafters.laws.cells import CELLS, EXACT, MOVED, Cell
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.committed import Committed, digest
from refengine.source_tree import RESULTS

LAW, PLANTED = "law", "planted"
COUNTED = ("rounds enumerated", "live states equal to a recompute", "live states that differ")
DISTANCES = ("tv of tokens and rounds", "tv of tokens", "live states that differ from a recompute")
COMMAND = "python -m refengine.selfcheck.drafters.committed_cells"


# --- running ---------------------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> None:
    """Run every cell whose result is missing or stale, of the drafters named or of all, in processes or a cluster."""
    parser = argparse.ArgumentParser(description="Run every cell whose committed result is missing or stale.")
    parser.add_argument("drafters", nargs="*", help="only these (default: all)")
    add_options(parser)
    given = parser.parse_args(arguments)
    stale = [key for key in RECORD.every_stale() if not given.drafters or _cell(key).drafter in given.drafters]
    with Progress("cells", len(stale)) as shown:
        todo = [Step(key, partial(found, key), _cell(key).drafter) for key in stale]
        where = {"processes": given.workers, "cluster": given.cluster, "preload": (battery.__name__,)}
        for step, (findings, _), seconds in played(todo, begun=shown.at, **where):
            RECORD.put(step.name, entry(step.name, findings))
            shown.finish(f"{step.name}: {seconds:.1f} s")


def _cell(key: str) -> Cell:
    return CELLS[key.partition(" ")[2]]


def found(key: str) -> list[Finding]:
    """What a cell gives."""
    what, name = key.split(" ", 1)
    return battery.law(name) if what == LAW else battery.planted(name)


def entry(key: str, findings: list[Finding]) -> dict[str, Any]:
    """The findings of a cell as they are committed."""
    if key.startswith(LAW):
        (finding,) = findings
        values = {key: number(value) for key, value in finding.numbers.items()}
        return {"consistent": finding.verdict == "consistent", **values}
    distances = {finding.id: [number(finding.numbers[key]) for key in DISTANCES] for finding in findings}
    return {name.rpartition("/")[2]: values for name, values in distances.items()}  # the plant's name ends the id


def number(value: Any) -> float:
    """To six digits."""
    plain: float = float(f"{value.value:.6g}") if isinstance(value, Quantity) else value
    return plain


# --- what it was computed from ---------------------------------------------------------------------------------------


def keys() -> list[str]:
    """The law of every cell; planted bugs in those of one policy, which shows them all: nothing is merged while a bug
    is in place, so that under all of them it would take hours."""
    return [f"{LAW} {name}" for name in CELLS] + [f"{PLANTED} {name}" for name in CELLS if plants(CELLS[name])]


def plants(cell: Cell) -> bool:
    """Whether state bugs are planted in a cell: in those with a history, a temperature and both cuts."""
    return cell.policy == "mixed" and not cell.stop


@cache
def digest_of(key: str) -> str:
    """Of everything that a cell's result depends on."""
    what, name = key.split(" ", 1)
    cell = CELLS[name]
    known = [repr(cell), parts_of(cell.drafter, cell.threshold, cell.rule)]
    if what == PLANTED:
        known += [repr(replace(plant, edit=replace(plant.edit, module=""))) for plant in ROWS[cell.drafter].plants]
    return digest(*known)


RECORD = Committed(RESULTS / "cells.json", digest_of, COMMAND, keys)


# --- what the report shows -------------------------------------------------------------------------------------------


def shown(drafter: str) -> list[Finding]:
    """The committed results of one drafter: consistent or violated as they were found, not tested where they are not
    of this source."""
    chosen = [name for name, cell in CELLS.items() if cell.drafter == drafter]
    laws = {name: entry for name in chosen if (entry := RECORD.fresh(f"{LAW} {name}"))}
    bugs = {name: entry for name in chosen if (entry := RECORD.fresh(f"{PLANTED} {name}"))}
    moves, bad = _moves(bugs), [name for name, entry in laws.items() if not entry["consistent"]]
    missing = [name for name in chosen if name not in laws or (plants(CELLS[name]) and name not in bugs)]
    bad += [f"{bug}: it shows in no cell" for bug, seen in moves.items() if not missing and not any(seen.values())]
    reason = f"{len(missing)} of {len(chosen)} cells have changed since or were not run (run: {COMMAND})"
    idle = [(bug, name) for bug, seen in moves.items() for name in seen if not seen[name]]
    return [
        Finding(
            id=f"decoder.{drafter}/every-policy",
            subject=f"refengine decoder, {drafter}",
            claim="Under every rule that fits and every policy the real loop's exact joint law is the target's, and "
            "every planted state bug moves it in some cell.",
            source=battery.LOSSLESS,
            verdict="violated" if bad else "not tested" if missing else "consistent",
            reason=reason if missing and not bad else "",
            method=f"committed result, its digest that of this source: exact law in float64, TV within {EXACT}; "
            f"a planted bug moves it by more than {MOVED}",
            recipe=Recipe(function=f"{__name__}:shown", arguments={"drafter": drafter}),
            numbers={
                "cells": len(laws),
                "largest tv": Quantity(
                    value=max((entry["tv"] for entry in laws.values()), default=0.0), tolerance=EXACT
                ),
                **{key: sum(entry[key] for entry in laws.values()) for key in COUNTED},
                "planted bugs": sum(len(seen) for seen in moves.values()),
                "planted bugs that move the law": sum(sum(seen.values()) for seen in moves.values()),
            },
            notes=[*bad[:5], *(f"{bug} in {name}: no effect on what is compared" for bug, name in idle)],
        )
    ]


def _moves(bugs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, bool]]:
    """By bug and cell: whether the law moves. It stands where the likeliest tokens keep their order, which is all that
    some drafts are made of, and where the bug acts on tokens beyond those that are compared."""
    moves: dict[str, dict[str, bool]] = {}
    for name, found in bugs.items():
        for bug, distances in found.items():
            if bug != "digest":
                moves.setdefault(bug, {})[name] = distances[0] > MOVED
    return moves


if __name__ == "__main__":
    main()
