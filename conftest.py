"""Test habits of this repository: the long tests are chosen by name only, and torch uses one thread.

A wheel has this file too, at the top of `refengine_tests`.
"""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from refengine.source_tree import ROOT

MARKERS = (
    "peer(row, case=None): holds a drafter of the table to independent code",
    "stat: a large-sample test that states null, n, alpha and the total variation it would detect",
    "long: the ten- to hundredfold version of a test",
    "gpu: needs a CUDA device",
    "coq: asks Coq; `make prove` runs these, `make test` does not",
    "on_record: has many dear cases; where nothing that they run has changed since all passed, a commit runs a sample",
    "control: a test that has to fail: where it passes, tests are not run, or not as they are written",
    "text: holds a text that runs to what is proved of it; `make prove` runs these, and needs Coq for some",
)
# Where `properties` and `statistical_tests` are: in the source tree one place, in a wheel two.
sys.path[:0] = [str(place) for place in (Path(__file__).parent, ROOT) if str(place) not in sys.path]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if not any(Path("/dev").glob("nvidia[0-9]*")):
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read by Triton when it is imported, by whichever test is first


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--drawn", action="store_true", help="of tests that are on record, run the sample of the commit")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is long, unless `-m` asks for it (`-m stat` takes ten minutes, `-m "stat and long"` all), and
    under `--drawn` the tests on record that this commit does not run again."""
    left = set[str]()
    if "long" not in (config.option.markexpr or ""):
        left |= {item.nodeid for item in items if item.get_closest_marker("long")}
    if config.option.drawn:
        from refengine.selfcheck.tests_on_record import MARK, spared  # not where a test runs on edited source

        left |= spared(item.nodeid for item in items if item.get_closest_marker(MARK))
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
        items[:] = [item for item in items if item.nodeid not in left]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.option.drawn:
        from refengine.selfcheck.tests_on_record import summary

        terminalreporter.write_line(summary())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half a million objects of torch, transformers and the tests live to the end: the garbage collector looks at none
    of them, neither while they are made nor later, and seldom at what the tests make."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()
