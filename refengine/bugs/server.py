"""A process that runs checks on edited source: one fork per job, so that torch is imported once and not per bug.

It reads one job per line on stdin and writes one answer per line on stdout, both JSON. A job is `{"sources": {module:
text}, "checks": [name], "first": bool, "seconds": s}`, with the whole text of every edited module; the answer
is a list of `{"check", "outcome", "detail", "witness", "tv"}` in the order in which the checks ran.

Outcomes: `holds`, `violated` (the claim is false: only this kills), `crashed` (an exception, which is no detection)
and `hung` (the time ran out in this check; later ones did not run). With `first` the job ends at the first that is not
`holds`. The server itself imports nothing of the package but the loader, so every fork imports edited source afresh.
"""

import json
import os
import resource
import selectors
import signal
import sys
import time
from importlib import import_module
from typing import Any

from refengine.bugs.loader import install_sources

MEMORY_LIMIT = 6 << 30  # bytes of address space beyond what the parent holds: an endless list ends in MemoryError


def serve(preload: list[str]) -> None:
    """Answer jobs until stdin ends."""
    for module in preload:
        import_module(module)
    for line in sys.stdin:
        print(json.dumps(run_forked(json.loads(line))), flush=True)


def run_forked(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one job in a fork of this process, and end it when its time is up."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(job, write)
    os.close(write)
    lines = _collect(read, float(job["seconds"]))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    return outcomes(lines)


def outcomes(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The child's lines as answers; a check that was begun and not ended has hung or died."""
    answers = [line for line in lines if line["outcome"] != "begun"]
    last = lines[-1] if lines else {"check": "", "outcome": "begun"}
    if last["outcome"] == "begun":
        answers.append({"check": last["check"], "outcome": "hung", "detail": "no answer within its time"})
    elif last["outcome"] == "died":
        answers[-1] = {**last, "outcome": "crashed"}
    return answers


def _collect(read: int, seconds: float) -> list[dict[str, Any]]:
    """What the child writes until it ends or its time is up. A child that ends in the middle of a check has died."""
    deadline, data = time.monotonic() + seconds, b""
    with selectors.DefaultSelector() as selector:
        selector.register(read, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            data += piece
    lines = [json.loads(line) for line in data.splitlines()]
    if lines and lines[-1]["outcome"] == "begun":
        lines.append({"check": lines[-1]["check"], "outcome": "died", "detail": "the process died"})
    return lines


def _child(job: dict[str, Any], write: int) -> None:
    """Run the checks and write what they say; never returns."""
    with os.fdopen(write, "w") as out:

        def say(**line: Any) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        try:
            _limit_memory()
            install_sources(job["sources"])
            for check in job["checks"]:
                say(check=check, outcome="begun")
                answer = run_check(check)
                say(check=check, **answer)
                if job["first"] and answer["outcome"] != "holds":
                    break
        finally:
            out.flush()
            os._exit(0)


def run_check(check: str) -> dict[str, Any]:
    """One check, "module:function" below `refengine.bugs.checks`, in this process."""
    try:
        module, function = check.split(":")
        found = getattr(import_module(f"refengine.bugs.checks.{module}"), function)()
    except BaseException as error:  # a planted defect may raise anything, SystemExit included
        return {"outcome": "crashed", "detail": f"{type(error).__name__}: {error}"[:400]}
    if found is None:
        return {"outcome": "holds"}
    tv = None if found.tv is None else str(found.tv)
    return {"outcome": "violated", "detail": found.what, "witness": found.witness, "tv": tv}


def _limit_memory() -> None:
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    serve(sys.argv[1:])
