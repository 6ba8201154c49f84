"""The statistical tests of length (`-m "stat and long"`) as the jobs of a campaign, each in a pytest of its own."""

import os
import subprocess
import sys
from functools import partial

import msgspec

from refengine.errors import BadInput
from refengine.jobs.run import Job
from refengine.report.finding import Finding, Recipe
from refengine.source_tree import IN_SOURCE_TREE, NOT_SHIPPED, ROOT

FOLDER = "statistical_tests"
STATED = "null: "  # how a test begins to say what it tested
PASSED, SKIPPED = "passed", "not tested"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "stat and long")
MAX_LINES = 20  # of what a test that fails prints


class Tested(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of a test: how it ended, and the lines that say what was tested, or what went wrong."""

    ended: str
    lines: list[str]


def jobs(only: str = "") -> list[Job]:
    """Every test of length whose name holds `only`."""
    if not IN_SOURCE_TREE:
        raise BadInput(f"there are no tests of length here: {NOT_SHIPPED}")
    listed = _pytest("--collect-only", FOLDER)
    names = [line for line in listed.stdout.splitlines() if line.startswith(FOLDER) and "::" in line and only in line]
    if not names:
        raise BadInput(f"no test of length has {only!r} in its name")
    return [Job(name, partial(tested, name)) for name in names]


def tested(name: str) -> Tested:
    """Run one test."""
    ran = _pytest("-rs", name)
    lines = ran.stdout.splitlines()
    if ran.returncode:
        return Tested("failed", [*lines, *ran.stderr.splitlines()][-MAX_LINES:])
    skipped = [line for line in lines if line.startswith("SKIPPED")]
    return Tested(SKIPPED if skipped else PASSED, skipped or [line for line in lines if line.startswith(STATED)])


def finding(name: str, found: Tested) -> Finding:
    """One test as a finding."""
    verdicts = {PASSED: "consistent", SKIPPED: "not tested"}
    return Finding(
        id=f"campaign.length/{name.rpartition('::')[2]}",
        subject=name,
        claim="The test of length passes.",
        source=name.partition("::")[0],
        verdict=verdicts.get(found.ended, "violated"),  # type: ignore[arg-type]
        reason=" ".join(found.lines) if found.ended == SKIPPED else "",
        method="; ".join(found.lines) if found.ended == PASSED else "a large sample",
        recipe=Recipe(function=f"{__name__}:again", arguments={"name": name}),
        witness={"printed": "\n".join(found.lines)} if found.ended not in verdicts else None,
    )


def again(name: str) -> list[Finding]:
    return [finding(name, tested(name))]


def _pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    return subprocess.run([*PYTEST, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
