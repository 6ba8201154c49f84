"""The tests that hold a drafter to independent code: recordings of official code, or a live peer.

Each says whose test it is where it stands: `@pytest.mark.peer("eagle1")`, or for some of its cases alone
`@pytest.mark.peer("eagle1", case="eagle1_A")`, where `case` is one of the parts of the test's id. `Peers` is the plugin
of pytest that picks them and keeps what became of them.
"""

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from refengine.source_tree import PROPERTIES, ROOT

if TYPE_CHECKING:
    import pytest

SECONDS = 900  # for those of one row; they take seconds
Outcomes: TypeAlias = dict[str, dict[str, str]]  # row -> test -> passed, failed or skipped


class Peers:
    """Runs the marked tests alone. `outcomes` is by row of the table, then by test."""

    def __init__(self) -> None:
        self.outcomes: Outcomes = {}
        self.rows: dict[str, list[str]] = {}

    def pytest_collection_modifyitems(self, items: "list[pytest.Item]") -> None:
        self.rows = {item.nodeid: rows_of(item) for item in items}
        items[:] = [item for item in items if self.rows[item.nodeid]]

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        if report.when != "call" and report.passed:
            return
        name = report.nodeid.removeprefix("properties/drafters/")
        for row in self.rows[report.nodeid]:
            self.outcomes.setdefault(row, {})[name] = report.outcome


def rows_of(item: "pytest.Item") -> list[str]:
    """The rows that a test is a peer of."""
    case = getattr(item, "callspec", None)
    parts = case.id.split("-") if case else []
    return [
        mark.args[0] for mark in item.iter_markers("peer") if "case" not in mark.kwargs or mark.kwargs["case"] in parts
    ]


def files_of(row: str) -> tuple[Path, ...]:
    """The files of properties/drafters with a test that is marked for a row."""
    files = sorted((PROPERTIES / "drafters").glob("test_*.py"))
    return tuple(file for file in files if f'mark.peer("{row}"' in file.read_text("utf-8"))


@cache
def outcomes(files: tuple[Path, ...]) -> Outcomes:
    """What became of every marked test of some files, in one process for all of them."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "outcomes.json"
        command = [sys.executable, "-m", __name__, str(file), *map(str, files)]
        subprocess.run(command, cwd=ROOT, timeout=SECONDS, capture_output=True, check=False)
        found: Outcomes = json.loads(file.read_text()) if file.is_file() else {}
    return found


def main(file: str, files: list[str]) -> None:
    """Run them, and write what became of them."""
    import pytest  # which a wheel does without

    peers = Peers()
    # This package has a plugin of pytest too, and is imported before pytest can rewrite its assertions.
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    pytest.main([*options, *files], plugins=[peers])
    Path(file).write_text(json.dumps(peers.outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
