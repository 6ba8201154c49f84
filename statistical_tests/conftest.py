"""The end of a run shows what every test stated, in the same order whichever process ran it, so that runs compare."""

from typing import Any

from statistical_tests.budget import STATEMENT


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed = terminalreporter.getreports("passed")
    stated = [line for report in passed for line in report.capstdout.splitlines() if line.startswith(STATEMENT)]
    if stated:
        terminalreporter.section("what was tested")
        for line in sorted(stated):
            terminalreporter.write_line(line)
