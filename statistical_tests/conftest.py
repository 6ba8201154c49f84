"""The end of a run shows what every test stated, in the same order whichever process ran it, so that runs compare; and
last of all the table of drafters. What they show together is a test too: a run in which it fails has failed."""

from typing import Any

import pytest

from statistical_tests.budget import ALPHA, HOW_TO_READ, STATEMENT
from statistical_tests.table import Together, lines_of, shown, together


def _printed(config: pytest.Config, outcome: str = "passed") -> list[str]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.getreports(outcome) if reporter else []
    return [line for report in reports for line in report.capstdout.splitlines()]


def _improbable(printed: list[str]) -> list[Together]:
    return [found for found in together(lines_of(printed)) if found.p <= ALPHA]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and _improbable(_printed(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    printed = _printed(terminalreporter.config)
    stated = sorted(line for line in printed if line.startswith(STATEMENT))
    failed = [
        f"FAILED all drafters of {x.rule}: {x.question} of {x.n:,} tokens, p = {x.p:.2g}" for x in _improbable(printed)
    ]
    wrong = _printed(terminalreporter.config, "failed")
    table = shown(lines_of([*printed, *wrong]), lines_of(wrong))
    for title, lines in (
        ("what was tested", stated and [*HOW_TO_READ, *stated]),
        ("every drafter against its target", [*table, *failed]),
    ):
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)
