"""Re-running a report: confirms what comes out again, and catches any other number, string, verdict or witness."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import msgspec
import pytest

from properties.helpers import report_example as example
from refengine.errors import BadInput
from refengine.report.canonical import canonical, plain
from refengine.report.finding import TABLE_TOLERANCE, Finding, Recipe
from refengine.report.report import Report, parse_report
from refengine.report.rerun import Outcome, compare, recipe_function, rerun

Install = Callable[[Callable[..., list[Finding]]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a function into the package as the recipe of the example's findings."""

    def put(function: Callable[..., list[Finding]]) -> None:
        module = ModuleType(example.MODULE)
        function.__module__ = example.MODULE
        module.findings = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, example.MODULE, module)

    return put


@pytest.fixture
def stored() -> Report:
    return parse_report(canonical(example.report()))


def results(outcomes: list[Outcome]) -> dict[str, str]:
    return {outcome.id: outcome.result for outcome in outcomes}


def test_everything_is_confirmed_with_one_call_a_recipe(install: Install, stored: Report) -> None:
    """Kills a comparison that calls a reloaded report different, and a recipe run once per finding."""
    calls: list[str] = []

    def again(**arguments: Any) -> list[Finding]:
        calls.append(canonical(arguments))
        return example.findings()

    install(again)
    outcomes = rerun(stored)
    assert [outcome.id for outcome in outcomes] == [finding.id for finding in stored.findings]
    assert all(outcome.confirmed for outcome in outcomes)
    assert len(calls) == len(set(calls)) == len({canonical(finding.recipe) for finding in stored.findings})
    assert [outcome.id for outcome in rerun(stored, "bugs/kill-matrix")] == ["bugs/kill-matrix"]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place in a plain value, with what stands there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not isinstance(value, dict | list):
        yield path, value
    for key, item in items:
        yield from leaves(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], leaf)
    return copy


def changed(path: tuple[Any, ...], leaf: Any) -> Any:
    """Something else of the same kind: the least change that must be noticed."""
    if path == ("role",):
        return "control" if leaf == "reference" else "reference"
    if leaf is None or isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, str):
        return leaf + "x"
    if isinstance(leaf, int):
        return leaf + 1
    return leaf + 1e-11 if path[-1] == "value" else leaf * (1 + 1e-6) + 3 * TABLE_TOLERANCE


@pytest.mark.parametrize("finding", example.findings(), ids=lambda finding: finding.id)
def test_any_change_is_caught(finding: Finding) -> None:
    """Kills a field, a table cell, a witness entry or a tolerance that the comparison does not look at."""
    whole = plain(finding)
    whole["numbers"] = {k: {**n, "tolerance": 1e-12} if isinstance(n, dict) else n for k, n in whole["numbers"].items()}
    if whole["magnitude"]:
        whole["magnitude"]["tv"]["tolerance"] = 1e-12
    stored = msgspec.convert(whole, Finding)
    assert compare(stored, stored) == []
    for path, leaf in leaves(whole):
        if path[0] in ("id", "replay", "verdict", "reason") or path in (("magnitude",), ("witness",)):
            continue  # bound to each other, or absent here: tested below
        other = msgspec.convert(put(whole, path, changed(path, leaf)), Finding)
        where = ".".join(str(part) for part in path if not isinstance(part, int))
        differences = compare(stored, other)
        assert differences, f"a change of {where} went unnoticed"
        assert differences[0].startswith(str(path[0]))


@pytest.mark.parametrize("finding", example.findings(), ids=lambda finding: finding.id)
def test_another_verdict_is_caught(finding: Finding) -> None:
    """Kills a verdict that is not compared, or a reason that is not."""
    tested = finding.verdict != "not tested"
    other = replaced(finding, verdict="not tested" if tested else "consistent", reason="no time" if tested else "")
    fields = [line.split(":")[0] for line in compare(finding, other)]
    assert fields == ["verdict", "reason"]
    if not tested:
        assert compare(finding, replaced(finding, reason="another reason"))


def replaced(finding: Finding, **changes: Any) -> Finding:
    return msgspec.convert({**plain(finding), **changes}, Finding)


def test_additions_and_removals_are_caught() -> None:
    """Kills comparing only what both have."""
    old = example.subjects()[0]
    for changes in (
        {"witness": {**plain(old)["witness"], "more": 1}},
        {"magnitude": None},
        {"numbers": {}},
        {"notes": []},
        {"tables": {}},
        {"numbers": {**plain(old)["numbers"], "runs": "5901"}},
        {"numbers": {**plain(old)["numbers"], "runs": True}},
    ):
        assert compare(old, replaced(old, **changes))
        assert compare(replaced(old, **changes), old)


def test_floats_within_their_tolerance_are_confirmed() -> None:
    """Kills demanding equal bits across machines, and a tolerance that is taken from the new finding."""
    old = example.subjects()[1]
    numbers = plain(old)["numbers"]
    wealth = numbers["log10 wealth"]
    near = {**numbers, "log10 wealth": {**wealth, "value": wealth["value"] + 0.9e-6}}
    far = {**numbers, "log10 wealth": {**wealth, "value": wealth["value"] + 1.1e-6}}
    loosened = {**numbers, "log10 wealth": {"value": wealth["value"] + 1.1e-6, "tolerance": 1.0}}
    assert compare(old, replaced(old, numbers=near)) == []
    assert compare(old, replaced(old, numbers=far))
    assert compare(old, replaced(old, numbers=loosened))
    assert compare(replaced(old, numbers=loosened), old), "a report must not widen its own tolerances"


def test_statistical_replay_compares_the_verdict_alone() -> None:
    """Kills fresh draws held to the old numbers, or a changed verdict excused by them."""
    old = replaced(example.subjects()[1], replay="statistical")
    assert compare(old, replaced(old, numbers={"draws": 3}, method="other draws", witness={"emitted": [1]})) == []
    assert compare(old, replaced(old, verdict="consistent")) == ["verdict: was 'violated', now 'consistent'"]
    assert compare(old, replaced(old, replay="exact"))


def test_crash_of_one_recipe_leaves_the_others(install: Install, stored: Report) -> None:
    """Kills a crash that counts as a detection, or that hides the findings of other recipes."""

    def again(seed: int = 0, **arguments: Any) -> list[Finding]:
        if seed:
            raise FloatingPointError("no such model\nsecond line")
        return [finding for finding in example.findings() if finding.id != "control/q-permuted"]

    install(again)
    outcomes = {outcome.id: outcome for outcome in rerun(stored)}
    crashed = outcomes["audit.kernel.hf/zero-at-zero"]
    assert (crashed.result, crashed.details) == ("could not run", ("FloatingPointError: no such model",))
    assert outcomes["control/q-permuted"].details == ("its recipe no longer makes this finding",)
    assert results(list(outcomes.values()))["bugs/kill-matrix"] == "confirmed"
    assert str(crashed) == "could not run audit.kernel.hf/zero-at-zero\n    FloatingPointError: no such model"


def test_what_cannot_be_tested_any_more_is_no_difference(install: Install, stored: Report) -> None:
    """Kills a server that is gone by now, said to differ from what it was found to be."""
    gone = {"verdict": "not tested", "reason": "no answer", "witness": None, "magnitude": None, "diagnosis": ""}

    def again(**arguments: Any) -> list[Finding]:
        return [replaced(finding, **gone) for finding in example.findings()]

    install(again)
    (outcome,) = rerun(stored, "audit.kernel.hf/zero-at-zero")
    assert (outcome.result, outcome.details) == ("could not run", ("no answer",))


@pytest.mark.parametrize(
    "function",
    [
        "os:system",
        "refenginex.a:b",
        "refengine:x",
        "refengine.report.canonical",
        "refengine.report.canonical:os.unlink",
        "refengine.report.canonical:write_atomic",  # ours, but makes no findings
        "refengine.report.rerun:compare",  # a list, but not of findings
        "refengine.report.html:files",  # not ours
        "refengine.report.report:PACKAGES",  # not a function
        "refengine.report.canonical:absent",
        "refengine.no_such_module:findings",
    ],
)
def test_recipes_call_nothing_but_makers_of_findings(function: str) -> None:
    """Kills a report that has any function of the machine called with arguments of its choice."""
    with pytest.raises((ValueError, ModuleNotFoundError)):
        recipe_function(Recipe(function=function))


def test_the_beginning_of_ids_makes_those_again(stored: Report) -> None:
    """Kills a beginning that makes one finding again, or all of them."""
    every = {finding.id for finding in stored.findings}
    begun = {name for name in every if name.startswith("audit.generate.hf/")}
    assert 1 < len(begun) < len(every)
    assert {outcome.id for outcome in rerun(stored, "audit.generate.hf/")} == begun


def test_unknown_id_is_one_clear_line(stored: Report) -> None:
    """Kills an unknown finding that counts as confirmed because nothing was compared."""
    with pytest.raises(BadInput, match=r"no finding that begins 'kill'; did you mean bugs/kill-matrix\?"):
        rerun(stored, "kill")
