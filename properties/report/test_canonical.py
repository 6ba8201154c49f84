"""report.json: one text for one report, strict on the way in, never half-written."""

import json
import os
import platform
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.helpers import report_example as example
from refengine.errors import BadInput
from refengine.files import write_atomic
from refengine.report.canonical import canonical, parse, plain
from refengine.report.finding import Finding, Quantity
from refengine.report.report import load_report, make_report, parse_report, save_report, unexpected

finite = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | st.integers() | finite | st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text("abé", max_size=3), inner))


@given(values)
def test_canonical_text_round_trips(value: Any) -> None:
    """Kills floats printed with fewer digits, keys left unsorted, a reload that changes the text (-0.0)."""
    text = canonical(value)
    assert parse(text, "it") == value
    assert canonical(parse(text, "it")) == text


def test_one_value_has_one_text() -> None:
    """Kills keys in the order in which they were filled in, and two texts for zero."""
    assert canonical({"b": 1, "a": {"d": 0.0, "c": ()}}) == canonical({"a": {"c": [], "d": -0.0}, "b": 1})


def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    """Kills: an order that comes from hashing, from the order of findings, or from dictionaries being filled."""
    script = (
        "import sys; from properties.helpers import report_example; from refengine.report.canonical import canonical; "
    )
    script += "sys.stdout.write(canonical(report_example.report()))"
    texts = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        child = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
        texts.append(child.stdout.decode())
    backwards = make_report(reversed(example.findings()), seed=20261121, defects=example.report().defects)
    assert texts == [canonical(backwards)] * 2


def test_reload_gives_the_same_bytes(tmp_path: Path) -> None:
    """Kills an integer Quantity, a tuple or a fraction that is written one way and read back another."""
    finding = Finding(
        id="a",
        subject="s",
        claim="c",
        source="s",
        verdict="violated",
        method="m",
        recipe=example.recipe(rows=(Fraction(1, 3), 2**70)),
        numbers={"n": 2**70, "x": Quantity(value=0, tolerance=0), "flag": True, "nothing": None},
        witness={"draws": (1, (2, 3))},
        tables={"evidence": {"draws": [], "log10_wealth": []}},
    )
    report = make_report([finding, *example.findings()], seed=0)
    path = tmp_path / "report.json"
    save_report(report, path)
    assert canonical(load_report(path)) == path.read_text() == canonical(report)


def test_report_says_nothing_about_the_machine() -> None:
    """Kills a host name, path, time or duration in report.json."""
    document = json.loads(canonical(example.report()))
    assert document.keys() == {"schema", "engine", "environment", "seed", "findings", "defects"}
    assert set(document["environment"]) >= {"python", "torch", "transformers", "numpy"}
    text = json.dumps(document["environment"])
    assert platform.node() not in text
    assert os.getcwd() not in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1.0, float("nan")]}, "value.a[1] is nan"),
        ({"a": float("inf")}, "value.a is inf"),
        ({"a": {3: 1}}, "value.a has the key 3"),
        ([{1, 2}], "value[0] is a set"),
        ({"x": Path("/")}, "value.x is a PosixPath"),
        ([Quantity(value=float("nan"), tolerance=0.0)], "value[0].value is nan"),
    ],
)
def test_what_has_no_canonical_text_is_named(value: Any, message: str) -> None:
    """Kills NaN written as null, integer keys that come back as text, sets in hash order, objects as their repr."""
    with pytest.raises(ValueError, match="report") as caught:
        plain(value)
    assert str(caught.value).startswith(message)


def edited(**changes: Any) -> str:
    document = json.loads(canonical(example.report()))
    finding = changes.pop("finding", {})
    document["findings"][0].update(finding)
    return json.dumps({**document, **changes})


WHOLE = canonical(example.report())
QUANTITY = {"value": 1.0, "tolerance": 0.0, "unit": "s"}
BAD = {
    "truncated": (WHOLE[:-40], "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "nan": (WHOLE.replace('"seed": 20261121', '"seed": NaN'), "contains NaN"),
    "twice": (WHOLE.replace('"seed": 20261121', '"seed": 1, "seed": 2'), "the key 'seed' twice"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "array": ("[]", "no schema version"),
    "other JSON": ('{"a": 1}', "no schema version"),
    "newer schema": (edited(schema=3), "schema version 3"),
    "unknown field": (edited(host="here"), "unknown field `host`"),
    "unknown field of a finding": (edited(finding={"duration": 3}), "unknown field `duration`"),
    "unknown field of a number": (edited(finding={"numbers": {"x": QUANTITY}}), "unknown field `unit`"),
    "bare float": (edited(finding={"numbers": {"x": 0.5}}), "$.findings[0].numbers"),
    "verdict": (edited(finding={"verdict": "passed"}), "'passed'"),
    "no reason": (edited(finding={"verdict": "not tested"}), "has a reason exactly when"),
    "ragged table": (edited(finding={"tables": {"t": {"a": [1], "b": []}}}), "differ in length"),
    "undrawable": (edited(finding={"tables": {"law": {"outcome": [1]}}}), "lacks the column 'target'"),
    "seed as text": (edited(seed="1"), "$.seed"),
    "older schema": (edited(schema=1), "schema version 1"),
    "duplicate id": (edited(findings=json.loads(WHOLE)["findings"][:1] * 2), "two findings have the id"),
    "unsorted": (edited(findings=json.loads(WHOLE)["findings"][::-1]), "not sorted"),
    "missing field": (json.dumps({"schema": 2}), "missing required field"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_report_is_one_clear_line(name: str) -> None:
    """Kills a loader that guesses, ignores what it does not know, or shows a traceback."""
    text, message = BAD[name]
    with pytest.raises(BadInput) as caught:
        parse_report(text, name="r.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("r.json ")
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    """Kills an OSError or UnicodeDecodeError that escapes the loader."""
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "absent.json", tmp_path, binary):
        with pytest.raises(BadInput, match=path.name):
            load_report(path)


def test_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills writing in place, and temporary files left behind."""
    path = tmp_path / "report.json"
    write_atomic(path, "before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match=r"cannot write .*report\.json: No space"):
        write_atomic(path, "after" * 1000)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_duplicate_ids_are_refused_when_made() -> None:
    """Kills two sections that both count one finding."""
    with pytest.raises(ValueError, match="two findings have the id 'bugs/kill-matrix'"):
        make_report([*example.findings(), example.kill_matrix()], seed=0)


def test_findings_refuse_what_cannot_be_compared() -> None:
    """Kills a float without a tolerance, which no other machine could be held to."""
    with pytest.raises(ValueError, match="'tv' is a bare float"):
        Finding(
            id="a",
            subject="s",
            claim="c",
            source="s",
            verdict="consistent",
            method="m",
            recipe=example.recipe(),
            numbers={"tv": 0.5},  # type: ignore[dict-item]
        )


def test_unexpected_are_failed_references_and_missed_controls() -> None:
    """Kills a third party's defect counted against us, or a missed control passed over."""
    assert unexpected(example.report()) == []
    document = json.loads(WHOLE)
    for finding in document["findings"]:
        if finding["id"] == "control/q-permuted":
            finding.update(verdict="not tested", reason="no time")
        if finding["id"] == "exact.block/lossless":
            finding.update(verdict="violated")
    assert [f.id for f in unexpected(parse_report(json.dumps(document)))] == [
        "control/q-permuted",
        "exact.block/lossless",
    ]
