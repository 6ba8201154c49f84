"""A process that runs checks on edited source: one fork per job, so that torch is imported once and not per bug.

It reads one job per line on stdin and writes one answer per line on stdout, both JSON. A job is `{"sources": {module:
text}, "checks": [name], "first": bool, "seconds": s}`, with the whole text of every edited module and the processor
seconds of one check; the answer is a list of `{"check", "outcome", "detail", "witness", "tv"}` in the order in which
the checks ran.

Outcomes: `holds`, `violated` (the claim is false, or the package refused by name what no right source asks for: only
this kills), `crashed` (any other exception, which is no detection) and `hung` (its time ran out; later ones did not
run). With `first` the job ends at the first `violated`, and after the third `crashed`. The server itself imports
nothing of the package but the loader: every fork imports the rest afresh.
"""

import json
import os
import resource
import selectors
import signal
import sys
import time
from importlib import import_module
from types import FrameType
from typing import Any

from refengine.source_edits.loader import PACKAGE, edited, install_sources

MEMORY_LIMIT = 6 << 30  # bytes of address space beyond what the parent holds: an endless list ends in MemoryError
PATIENCE = 60.0  # wall seconds for a child that says nothing: processor time ends checks, this ends what sleeps


# What the package itself refuses by name: the refusal is the detection. No other exception is one.
REFUSALS = ("decided twice", "used twice", "negative or NaN", "no weight is positive", "no token has mass")


class TimeUp(BaseException):
    """The processor time of a check has run out."""


def serve(preload: list[str]) -> None:
    """Answer jobs until stdin ends."""
    for module in preload:
        import_module(module)
    for line in sys.stdin:
        print(json.dumps(run_forked(json.loads(line))), flush=True)


def run_forked(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one job in a fork of this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(job, write)
    os.close(write)
    lines, ended = _collect(read, PATIENCE + 10 * float(job["seconds"]))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    answers = [line for line in lines if line["outcome"] != "begun"]
    if lines and lines[-1]["outcome"] == "begun":
        outcome = ("crashed", "the process died") if ended else ("hung", "no answer")
        answers.append({"check": lines[-1]["check"], "outcome": outcome[0], "detail": outcome[1]})
    return answers


def _collect(read: int, patience: float) -> tuple[list[dict[str, Any]], bool]:
    """What the child writes, and whether it ended by itself rather than by falling silent."""
    data, deadline, ended = b"", time.monotonic() + patience, False
    with selectors.DefaultSelector() as selector:
        selector.register(read, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            piece = os.read(read, 1 << 16)
            if not piece:
                ended = True
                break
            data += piece
            deadline = time.monotonic() + patience
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")], ended


def _child(job: dict[str, Any], write: int) -> None:
    """Run the checks and write what they say; never returns."""
    with os.fdopen(write, "w") as out:

        def say(**line: Any) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        try:
            _prepare()
            install_sources(job["sources"])
            crashes = 0
            for check in job["checks"]:
                say(check=check, outcome="begun")
                answer = run_check(check, float(job["seconds"]))
                say(check=check, **answer)
                crashes += answer["outcome"] == "crashed"
                if answer["outcome"] == "hung" or (job["first"] and (answer["outcome"] == "violated" or crashes == 3)):
                    break
        finally:
            out.flush()
            os._exit(0)


def _prepare() -> None:
    """Silence (stdout carries answers), limit memory, and let processor time raise TimeUp."""
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def time_up(number: int, frame: FrameType | None) -> None:
        raise TimeUp

    signal.signal(signal.SIGPROF, time_up)


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
        return {"outcome": outcome, "detail": f"{'refused' if named else 'ValueError'}: {error}"[:400]}
    except BaseException as error:  # a planted defect may raise anything, SystemExit included
        return {"outcome": "crashed", "detail": f"{type(error).__name__}: {error}"[:400]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    if found is None:
        return {"outcome": "holds"}
    tv = None if found.tv is None else str(found.tv)
    return {"outcome": "violated", "detail": found.what, "witness": found.witness, "tv": tv}


def run_tests(file: str) -> dict[str, Any]:
    """A test file: the first claim that is false, or the first crash where there is no such claim."""
    import pytest

    os.chdir(PACKAGE.parent)
    for module in sorted(edited):  # before pytest's own finder, which rewrites asserts, would find the file on disk
        import_module(module)
    listener = _Listener()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-q", "--tb=no", "--assert=plain", "-p", "refengine.pytest_plugin"]
    left_out = ("cacheprovider", "unraisableexception", "threadexception")  # they take longer than the tests
    code = pytest.main([*options, *(f"-pno:{name}" for name in left_out), file], plugins=[listener])
    if code == 0:
        return {"outcome": "holds"}
    return listener.answer or {"outcome": "crashed", "detail": f"{file}: exit code {int(code)}"}


class _Listener:
    """What the tests of a file say. A claim is false where an assertion fails, or where nothing is refused."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        error, kind = call.excinfo.value, call.excinfo.type.__name__
        named = isinstance(error, ValueError) and any(words in str(error) for words in REFUSALS)
        outcome = "violated" if named or kind in ("AssertionError", "Failed") else "crashed"
        if self.answer is None or outcome == "violated":
            lines = str(call.excinfo.traceback[-1].statement if kind == "AssertionError" else error).splitlines()
            said = " ".join([node.name + ":", *map(str.strip, lines)] if kind == "AssertionError" else lines[:1])
            self.answer = {"outcome": outcome, "detail": said[:400]}
        if outcome == "violated" and hasattr(node, "session"):
            node.session.shouldstop = "a claim is false"


if __name__ == "__main__":
    serve(sys.argv[1:])
