"""Findings in the formats that build servers show: JUnit XML, SARIF 2.1.0, and the JSON of a badge.

JUnit (the schema of Jenkins' xUnit plugin): a finding is a test case, violated is a failure, not tested is skipped.
SARIF (OASIS standard of 2020): a finding is a rule; violated is an error, not tested is "open", consistent is "pass".
Badge (the endpoint schema of shields.io): the verdict in its colour.
"""

import json
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from refengine import __version__
from refengine.report.finding import Finding

KINDS = {"violated": "fail", "not tested": "open", "consistent": "pass"}  # of a result, in SARIF
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 cannot hold


def junit(findings: Sequence[Finding]) -> str:
    """A test suite with a case for each finding."""
    count = {verdict: str(sum(f.verdict == verdict for f in findings)) for verdict in KINDS}
    told = {"name": "refengine", "tests": str(len(findings)), "failures": count["violated"], "errors": "0"}
    suite = ElementTree.Element("testsuite", told | {"skipped": count["not tested"]})
    for finding in findings:
        named = {"classname": _plain(finding.subject), "name": _plain(f"{finding.id}: {finding.claim}")}
        case = ElementTree.SubElement(suite, "testcase", named)
        if finding.verdict == "violated":
            failure = ElementTree.SubElement(case, "failure", {"message": _plain(finding.diagnosis or finding.claim)})
            failure.text = _plain(json.dumps(finding.witness, indent=2, default=str))
        if finding.verdict == "not tested":
            ElementTree.SubElement(case, "skipped", {"message": _plain(finding.reason)})
    ElementTree.indent(suite)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ElementTree.tostring(suite, encoding='unicode')}\n"


def sarif(findings: Sequence[Finding]) -> str:
    """One run with a result for each finding; what is audited stands as a logical location, there being no file."""
    rules = [{"id": f.id, "shortDescription": {"text": f.claim}, "help": {"text": f.source}} for f in findings]
    driver = {"name": "refengine", "version": __version__, "rules": rules}
    log = {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{"tool": {"driver": driver}, "results": [_result(i, f) for i, f in enumerate(findings)]}],
    }
    return json.dumps(log, indent=2, default=str) + "\n"


def badge(line: str) -> str:
    """Of the last line of an audit."""
    verdict = line.removeprefix("VERDICT ").split(" ")[0]
    colour = {"consistent": "brightgreen", "violated": "red"}.get(verdict, "yellow")
    shown = {"schemaVersion": 1, "label": "lossless", "message": verdict.replace("-", " "), "color": colour}
    return json.dumps(shown) + "\n"


def _result(index: int, finding: Finding) -> dict[str, Any]:
    said = finding.diagnosis or finding.reason or finding.claim
    return {
        "ruleId": finding.id,
        "ruleIndex": index,
        "kind": KINDS[finding.verdict],
        "level": "error" if finding.verdict == "violated" else "none",
        "message": {"text": said},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": finding.subject, "kind": "resource"}]}],
        "properties": {"method": finding.method, "witness": finding.witness, "notes": finding.notes},
    }


def _plain(text: str) -> str:
    """Without what XML cannot hold."""
    return NO_XML.sub("\ufffd", text)
