"""The end of a run shows what every test stated, in the same order whichever process ran it, so that runs compare; and
last of all the table of drafters."""

from typing import Any

from statistical_tests.budget import STATEMENT
from statistical_tests.table import shown


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed = terminalreporter.getreports("passed")
    printed = [line for report in passed for line in report.capstdout.splitlines()]
    stated = sorted(line for line in printed if line.startswith(STATEMENT))
    for title, lines in (("what was tested", stated), ("every drafter against its target", shown(printed))):
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)
