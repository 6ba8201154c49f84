"""Findings in the formats that build servers show: JUnit XML, SARIF 2.1.0, and the JSON of a badge.

JUnit (the schema of Jenkins' xUnit plugin): a finding is a test case, violated is a failure, not tested is skipped.
SARIF (OASIS standard of 2020): a finding is a rule, and a result where it is violated; what is not tested is a warning
    of the run. Code scanning shows every result as an alert, those that passed too, and takes none without a file.
Badge (the endpoint schema of shields.io): the verdict in its colour.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from refengine import __version__
from refengine.report.finding import Finding

VERDICTS = ("violated", "not tested", "consistent")
FUNCTION = re.compile(r"([\w.]+):(?:\w+\.)*(\w+)")  # an audited function: its module and its own name
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 cannot hold


def junit(findings: Sequence[Finding]) -> str:
    """A test suite with a case for each finding."""
    count = {verdict: str(sum(f.verdict == verdict for f in findings)) for verdict in VERDICTS}
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
    """One run: a rule for each finding, a result for each that is violated."""
    rules = [{"id": f.id, "shortDescription": {"text": f.claim}, "help": {"text": f.source}} for f in findings]
    driver = {"name": "refengine", "version": __version__, "rules": rules}
    warnings = [
        {"level": "warning", "message": {"text": f"not tested: {f.reason}"}, "associatedRule": {"id": f.id, "index": i}}
        for i, f in enumerate(findings)
        if f.verdict == "not tested"
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": warnings}],
        "results": [_result(i, f) for i, f in enumerate(findings) if f.verdict == "violated"],
    }
    log = {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run]}
    return json.dumps(log, indent=2, default=str) + "\n"


def badge(line: str) -> str:
    """Of the last line of an audit."""
    verdict = line.removeprefix("VERDICT ").split(" ")[0]
    colour = {"consistent": "brightgreen", "violated": "red"}.get(verdict, "yellow")
    shown = {"schemaVersion": 1, "label": "lossless", "message": verdict.replace("-", " "), "color": colour}
    return json.dumps(shown) + "\n"


def _result(index: int, finding: Finding) -> dict[str, Any]:
    file, line = place(finding)
    return {
        "ruleId": finding.id,
        "ruleIndex": index,
        "kind": "fail",
        "level": "error",
        "message": {"text": finding.diagnosis or finding.claim},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": line}},
                "logicalLocations": [{"fullyQualifiedName": finding.subject, "kind": "resource"}],
            }
        ],
        "partialFingerprints": {"finding/v1": finding.id},
        "properties": {"method": finding.method, "witness": finding.witness, "notes": finding.notes},
    }


def place(finding: Finding) -> tuple[str, int]:
    """(the file that a finding is about as a URI, relative to the current folder where it lies in it; the line).

    The file of an audited function and the line of its definition, or the record that was read; of a server or a
    library, which has none, its name.
    """
    arguments = finding.recipe.arguments
    if named := FUNCTION.fullmatch(finding.subject):
        file = Path(arguments.get("path") or ".", *named[1].split(".")).with_suffix(".py")
    elif isinstance(arguments.get("file"), str):
        file = Path(arguments["file"])
    else:
        return quote(finding.subject, safe="/"), 1
    below = os.path.relpath(file)
    uri = file.absolute().as_uri() if below.startswith("..") else quote(below, safe="/")
    try:
        text = file.read_text(encoding="utf-8") if named else ""
    except (OSError, UnicodeDecodeError):
        text = ""
    lines = enumerate(text.splitlines(), 1)
    defined = re.compile(rf"\s*(async\s+def|def|class)\s+{named[2]}\b|{named[2]}\s*[:=]" if named else "$^")
    return uri, next((number for number, line in lines if defined.match(line)), 1)


def _plain(text: str) -> str:
    """Without what XML cannot hold."""
    return NO_XML.sub("\ufffd", text)
