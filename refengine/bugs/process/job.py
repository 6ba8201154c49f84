"""The child's side of a job: edited sources are installed, then one check runs per request (`pool.py` asks).

Outcomes: `holds`, `violated` (the claim is false, or the package refused by name what no right source asks for: only
this kills), `crashed` (any other exception, which is no detection) and `hung` (its processor time ran out). The fork
server of these children imports nothing of the package but the sandbox: every child imports the rest afresh.
"""

import os
import signal
from importlib import import_module
from types import FrameType
from typing import Any

from refengine.audit.sandbox.child import Handler
from refengine.source_edits.loader import edited, install_sources
from refengine.source_tree import PACKAGE

# What the package itself refuses by name: the refusal is the detection. No other exception is one.
REFUSALS = ("decided twice", "used twice", "negative or NaN", "no weight is positive", "no token has mass")
SHOWN_CHARACTERS = 400  # of an exception


class TimeUp(BaseException):
    """The processor time of a check has run out."""


def make() -> Handler:
    """The factory that Child names. Answers {"sources": {module: whole text}} and {"check": name, "seconds": s}."""

    def time_up(number: int, frame: FrameType | None) -> None:
        raise TimeUp

    signal.signal(signal.SIGPROF, time_up)

    def handle(request: dict[str, Any]) -> Any:
        if "sources" in request:
            return install_sources(request["sources"])
        return run_check(request["check"], request["seconds"])

    return handle


def run_check(check: str, seconds: float) -> dict[str, Any]:
    """One check in this process: "module:function" or "pytest:file[::test]"; without a dot the module is one of
    `refengine.bugs.checks`."""
    module, function = check.split(":", 1)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        if module == "pytest":
            return run_tests(function, seconds)
        found = getattr(import_module(module if "." in module else f"refengine.bugs.checks.{module}"), function)()
    except TimeUp:
        return hung(seconds)
    except ValueError as error:
        named = any(words in str(error) for words in REFUSALS)
        outcome = "violated" if named else "crashed"
        return {"outcome": outcome, "detail": f"{'refused' if named else 'ValueError'}: {error}"[:SHOWN_CHARACTERS]}
    except BaseException as error:  # a planted defect may raise anything, SystemExit included
        return {"outcome": "crashed", "detail": f"{type(error).__name__}: {error}"[:SHOWN_CHARACTERS]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    if found is None:
        return {"outcome": "holds"}
    tv = None if found.tv is None else str(found.tv)
    return {"outcome": "violated", "detail": found.what, "witness": found.witness, "tv": tv}


def hung(seconds: float) -> dict[str, Any]:
    return {"outcome": "hung", "detail": f"more than {seconds:g} s of processor time"}


def run_tests(file: str, seconds: float) -> dict[str, Any]:
    """A test file: the first claim that is false, or the first crash where there is no such claim."""
    import pytest

    os.chdir(PACKAGE.parent)
    for module in sorted(edited):  # before pytest's own finder, which rewrites asserts, would find the file on disk
        import_module(module)
    listener = _Listener(hung(seconds))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-q", "--tb=no", "--assert=plain", "-p", "refengine.pytest_plugin"]
    left_out = ("cacheprovider", "unraisableexception", "threadexception")  # they take longer than the tests
    code = pytest.main([*options, *(f"-pno:{name}" for name in left_out), file], plugins=[listener])
    if code == 0:
        return {"outcome": "holds"}
    return listener.answer or {"outcome": "crashed", "detail": f"{file}: exit code {int(code)}"}


class _Listener:
    """What the tests of a file say. A claim is false where an assertion fails, or where nothing is refused."""

    def __init__(self, hung: dict[str, Any]) -> None:
        self.hung = hung
        self.answer: dict[str, Any] | None = None

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        error, kind = call.excinfo.value, call.excinfo.type.__name__
        named = isinstance(error, ValueError) and any(words in str(error) for words in REFUSALS)
        outcome = "violated" if named or kind in ("AssertionError", "Failed") else "crashed"
        if self.answer is None or outcome == "violated":
            lines = str(call.excinfo.traceback[-1].statement if kind == "AssertionError" else error).splitlines()
            said = " ".join([node.name + ":", *map(str.strip, lines)] if kind == "AssertionError" else lines[:1])
            self.answer = {"outcome": outcome, "detail": said[:SHOWN_CHARACTERS]}
        if isinstance(error, TimeUp):  # pytest takes it for the failure of a test
            self.answer = self.hung
        if hasattr(node, "session") and (outcome == "violated" or isinstance(error, TimeUp)):
            node.session.shouldstop = f"{node.name} decided it"
