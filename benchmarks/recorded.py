"""A pytest plugin, `-p benchmarks.recorded`: a line for each test, when it has ended, in the file RECORDED names.

Written line by line, so that what a crash or a limit cuts off keeps what came before it.
"""

import json
import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        line = {"test": report.nodeid.split("::")[-1], "outcome": report.outcome, **dict(report.user_properties)}
        with Path(os.environ["RECORDED"]).open("a") as file:
            file.write(json.dumps(line) + "\n")
