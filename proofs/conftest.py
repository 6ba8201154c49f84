"""Tests marked `coq` ask Coq, which takes a minute to compile what it is asked about: they are part of `make prove`, in
which what is skipped fails: a prover that is not installed would else be a proof that nobody asks for."""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from proofs.gate.build import absent
from proofs.translate.running import PACKAGES, differing, meanings

OPTION = "--nothing-skipped"
LEAVE_OUT = ("deselect", "keyword", "ignore", "ignore_glob", "lf", "stepwise", "maxfail")  # options, as pytest has them


@pytest.fixture(scope="session", autouse=True)
def words_stay_what_they_are() -> Iterator[None]:
    """Fails where, at the end, a name of the rules means something else than at the beginning: a function that runs may
    put another one in its place."""
    packages = (*PACKAGES, "refengine.engine", "refengine.engine.rules")
    before = meanings(packages)
    yield
    assert [*differing(meanings(packages), before)] == []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="What is skipped fails, but for want of a CUDA device.")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("coq") and (missing := absent()):
        pytest.skip(missing)


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """What is never collected is not skipped. Raises UsageError."""
    left_out = [name for name in LEAVE_OUT if config.getoption(name, default=None)]
    if left_out and config.getoption(OPTION, default=False):
        raise pytest.UsageError(f"{OPTION} asks every test: leave out {', '.join(left_out)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    return _held(item, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    return _held(collector, (yield))


def _held(node: pytest.Item | pytest.Collector, report: Any) -> Any:
    if node.get_closest_marker("control") and report.when == "call":
        failed, report.longrepr = report.failed, f"{node.nodeid} has to fail, and did not: are the tests run?"
        report.outcome = "passed" if failed else "failed"
    elif report.skipped and node.config.getoption(OPTION, default=False) and not node.get_closest_marker("gpu"):
        report.outcome, report.longrepr = "failed", f"{node.nodeid} was skipped: {report.longrepr}"
    return report
