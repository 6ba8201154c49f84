"""Re-running a report: make its findings again by their recipes and compare, field by field.

A recipe may run third-party code that its arguments name, so a report is re-run only by those who trust its author.
"""

import importlib
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import refengine
from refengine.report.canonical import canonical, plain
from refengine.report.finding import TABLE_TOLERANCE, Finding, Recipe
from refengine.report.report import Report
from refengine.report.terminal import Progress

Result = Literal["confirmed", "differs", "could not run"]
# Under a fresh draw the numbers change by nature; what was claimed of whom, and the verdict, do not.
STATISTICAL = ("id", "subject", "claim", "source", "verdict", "role", "replay", "recipe")
WITHIN_TOLERANCE = ("numbers", "magnitude", "tables")


@dataclass(frozen=True)
class Outcome:
    """What became of one finding: `details` are its differing fields, or why it could not run."""

    id: str
    result: Result
    details: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        return self.result == "confirmed"

    def __str__(self) -> str:
        return "\n    ".join([f"{self.result:<13} {self.id}", *self.details])


def rerun(report: Report, beginning: str = "") -> list[Outcome]:
    """Make the findings of a report again (all, or those whose ids begin so) and compare them; outcomes sorted by id.

    Findings of one recipe are made by one call. Raises BadInput where no id begins so.
    """
    wanted = sorted(report.beginning_with(beginning) if beginning else report.findings, key=_recipe_text)
    groups = [list(group) for _, group in groupby(wanted, key=_recipe_text)]
    outcomes: list[Outcome] = []
    with Progress("rerun", len(groups)) as shown:
        for group in groups:
            shown.at(group[0].recipe.function)
            made = _outcomes(group)
            outcomes += made
            confirmed = sum(outcome.confirmed for outcome in made)
            shown.finish(f"{group[0].recipe.function}: {confirmed} of {len(made)} confirmed")
    return sorted(outcomes, key=lambda outcome: outcome.id)


def _recipe_text(finding: Finding) -> str:
    return canonical(finding.recipe)


def _outcomes(group: Sequence[Finding]) -> list[Outcome]:
    recipe = group[0].recipe
    try:
        again = {finding.id: finding for finding in recipe_function(recipe)(**recipe.arguments)}
    except Exception as error:  # of any kind: it is reported, and the other recipes still run
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return [Outcome(finding.id, "could not run", (reason,)) for finding in group]
    outcomes = []
    for finding in group:
        if finding.id not in again:
            outcomes.append(Outcome(finding.id, "differs", ("its recipe no longer makes this finding",)))
            continue
        made = again[finding.id]
        if made.verdict == "not tested" and finding.verdict != "not tested":  # a server that is gone refutes nothing
            outcomes.append(Outcome(finding.id, "could not run", (made.reason,)))
            continue
        differing = tuple(compare(finding, made))
        outcomes.append(Outcome(finding.id, "differs" if differing else "confirmed", differing))
    return outcomes


def recipe_function(recipe: Recipe) -> Callable[..., Iterable[Finding]]:
    """The function that a recipe names: of a module of refengine, and annotated as returning findings.

    Both are demanded so that a report can call nothing else of ours, and nothing that we import from elsewhere.
    """
    module_name, _, name = recipe.function.partition(":")
    if not module_name.startswith("refengine.") or not name.isidentifier():
        raise ValueError(f"recipe {recipe.function!r} is not of the form refengine.module:function")
    try:
        function = getattr(importlib.import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        if not module_name.startswith(str(error.name)):  # a library that the recipe's module needs
            raise
        function = None
    if not callable(function):
        raise ValueError(
            f"refengine {refengine.__version__} has no {recipe.function}: another version made this recipe"
        )
    if typing.get_args(typing.get_type_hints(function).get("return")) != (Finding,):
        raise ValueError(f"{recipe.function} is not annotated as returning findings")
    return typing.cast(Callable[..., Iterable[Finding]], function)


def compare(stored: Finding, again: Finding) -> list[str]:
    """The fields in which a finding came out differently, one line each; empty where it is confirmed."""
    old, new = plain(stored), plain(again)
    fields = STATISTICAL if stored.replay == "statistical" else tuple(old)
    return [line for name in fields for line in _differences(old[name], new[name], name, name in WITHIN_TOLERANCE)]


def _differences(old: Any, new: Any, where: str, within: bool) -> list[str]:
    if within and _is_quantity(old) and _is_quantity(new):
        tolerance = old["tolerance"]  # itself a float, and made again: a report cannot widen its own tolerances
        loosened = _beyond(tolerance, new["tolerance"], TABLE_TOLERANCE * tolerance, f"{where}.tolerance")
        return loosened + _beyond(old["value"], new["value"], tolerance, where)
    if within and type(old) is float and type(new) is float:
        return _beyond(old, new, TABLE_TOLERANCE * max(1.0, abs(old)), where)
    if type(old) is not type(new):
        return [f"{where}: was {_short(old)}, now {_short(new)}"]
    if isinstance(old, dict):
        lines = [f"{where}.{key}: was {_short(old[key])}, now absent" for key in old if key not in new]
        lines += [f"{where}.{key}: was absent, now {_short(new[key])}" for key in new if key not in old]
        both = [key for key in old if key in new]
        return lines + [line for key in both for line in _differences(old[key], new[key], f"{where}.{key}", within)]
    if isinstance(old, list):
        if len(old) != len(new):
            return [f"{where}: had {len(old)} entries, now {len(new)}"]
        pairs = enumerate(zip(old, new, strict=True))
        return [line for i, (a, b) in pairs for line in _differences(a, b, f"{where}[{i}]", within)]
    return [] if old == new else [f"{where}: was {_short(old)}, now {_short(new)}"]


def _beyond(old: float, new: float, tolerance: float, where: str) -> list[str]:
    if abs(old - new) <= tolerance:
        return []
    return [f"{where}: was {old!r}, now {new!r}, tolerance {tolerance!r}"]


def _is_quantity(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"value", "tolerance"}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
