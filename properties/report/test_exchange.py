"""Findings as JUnit XML and SARIF."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from refengine.report.exchange import junit, sarif
from refengine.report.finding import Finding, Recipe, Verdict


def finding(verdict: Verdict, **more: Any) -> Finding:
    told: dict[str, Any] = {
        "id": f"a/{verdict}",
        "subject": "s <\x00&>",
        "claim": "It is so.",
        "source": "x",
        "method": "m",
    }
    arguments = more.pop("arguments", {})
    recipe = Recipe(function="a:b", arguments=arguments)
    told |= {"witness": {}} if verdict == "violated" else {}
    return Finding(**{"verdict": verdict, "recipe": recipe, "role": "subject", **told, **more})


FOUND = [
    finding("violated", witness={"text": "\x1b]]>"}, diagnosis="top_k is ignored"),
    finding("not tested", reason="refused"),
    finding("consistent"),
]


def test_junit_says_what_failed_and_what_was_not_run() -> None:
    """Bug: an untested claim that passes; a control character of a witness that no parser takes."""
    suite = ElementTree.fromstring(junit(FOUND))
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    failed, skipped, passed = suite
    assert [child.get("message") for child in (*failed, *skipped)] == ["top_k is ignored", "refused"]
    assert not list(passed)


def test_sarif_has_a_rule_for_each_and_a_result_for_what_is_violated() -> None:
    """Kills an alert of code scanning for what is consistent (every result is shown as one), and an untested claim that
    the file does not mention."""
    (run,) = json.loads(sarif(FOUND))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [f.id for f in FOUND]
    (result,) = run["results"]
    assert (result["kind"], result["level"], result["message"]["text"]) == ("fail", "error", "top_k is ignored")
    assert FOUND[result["ruleIndex"]].id == result["ruleId"] == "a/violated"
    (invocation,) = run["invocations"]
    (warning,) = invocation["toolExecutionNotifications"]
    assert (warning["message"]["text"], warning["associatedRule"]["index"]) == ("not tested: refused", 1)


@pytest.mark.parametrize(
    ("subject", "arguments", "uri", "line"),
    [
        ("kernels.mine:verify", {"path": "src"}, "src/kernels/mine.py", 3),
        ("kernels.mine:Verifier.call", {"path": "src"}, "src/kernels/mine.py", 7),
        ("kernels.mine:made", {"path": "src"}, "src/kernels/mine.py", 9),
        ("kernels.mine:gone", {"path": "src"}, "src/kernels/mine.py", 1),
        ("absent:verify", {}, "absent.py", 1),
        ("12 recorded rounds", {"file": "a folder/rounds.safetensors"}, "a%20folder/rounds.safetensors", 1),
        ("http://localhost:1/v1 x", {}, "http%3A//localhost%3A1/v1%20x", 1),
    ],
)
def test_a_result_of_sarif_names_a_file_and_a_line(
    subject: str, arguments: dict[str, Any], uri: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a file that code scanning refuses whole ("expected a physical location"), and an alert at line 1 of a file
    whose function is known."""
    file = tmp_path / "src" / "kernels" / "mine.py"
    file.parent.mkdir(parents=True)
    file.write_text("import x\n\ndef verify(p):\n    pass\n\nclass Verifier:\n    def call(self): pass\n\nmade = 1\n")
    monkeypatch.chdir(tmp_path)
    (run,) = json.loads(sarif([finding("violated", subject=subject, arguments=arguments)]))["runs"]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == subject


def test_a_file_outside_the_folder_is_a_whole_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills ../.. in a result, which leads out of the repository that it is shown in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (run,) = json.loads(sarif([finding("violated", subject="mine:f", arguments={"path": str(tmp_path)})]))["runs"]
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": (tmp_path / "mine.py").as_uri()}
