"""`-m stat` leaves out the long version of a test, `-m "stat and long"` is that version alone.

The end of a run shows what every test stated, in the same order whichever process ran it: two runs can be compared.
"""

from typing import Any

import pytest

from statistical_tests.budget import STATEMENT


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "long" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed = terminalreporter.getreports("passed")
    stated = [line for report in passed for line in report.capstdout.splitlines() if line.startswith(STATEMENT)]
    if stated:
        terminalreporter.section("what was tested")
        for line in sorted(stated):
            terminalreporter.write_line(line)
