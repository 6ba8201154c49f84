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
    """One check in this process: "module:function" below `refengine.bugs.checks`, or "pytest:file[::test]"."""
    module, function = check.split(":", 1)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        if module == "pytest":
            return run_tests(function)
        found = getattr(import_module(f"refengine.bugs.checks.{module}"), function)()
    except TimeUp:
        return {"outcome": "hung", "detail": f"more than {seconds:g} s of processor time"}
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


def run_tests(file: str) -> dict[str, Any]:
    """A test file of this repository: a failed assertion is a violation, everything else that fails is a crash."""
    import pytest

    os.chdir(PACKAGE.parent)
    for module in sorted(edited):  # before pytest's own finder, which rewrites asserts, would find the file on disk
        import_module(module)
    failed: list[str] = []

    class Listener:
        def pytest_exception_interact(self, call: Any) -> None:
            failed.append(call.excinfo.type.__name__)

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore:Module already imported"]  # what the server preloaded is not rewritten, nor need it be
    code = pytest.main([*options, file], plugins=[Listener()])
    if code == 0:
        return {"outcome": "holds"}
    outcome = "violated" if code == 1 and failed == ["AssertionError"] else "crashed"
    return {"outcome": outcome, "detail": f"{file}: {', '.join(failed) or f'exit code {int(code)}'}"}
