"""Findings as JUnit XML and SARIF."""

import json
from xml.etree import ElementTree

from refengine.report.exchange import junit, sarif
from refengine.report.finding import Finding, Recipe, Verdict


def finding(verdict: Verdict, **more: object) -> Finding:
    told = {"id": f"a/{verdict}", "subject": "s <\x00&>", "claim": "It is so.", "source": "x", "method": "m"}
    return Finding(verdict=verdict, recipe=Recipe(function="a:b"), role="subject", **told, **more)  # type: ignore[arg-type]


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


def test_sarif_has_a_rule_and_a_result_for_each() -> None:
    """Bug: an untested claim that passes, or a violated one that is no error."""
    (run,) = json.loads(sarif(FOUND))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [f.id for f in FOUND]
    assert [(r["kind"], r["level"]) for r in run["results"]] == [("fail", "error"), ("open", "none"), ("pass", "none")]
    assert run["results"][0]["message"]["text"] == "top_k is ignored"
    assert all(FOUND[r["ruleIndex"]].id == r["ruleId"] for r in run["results"])
