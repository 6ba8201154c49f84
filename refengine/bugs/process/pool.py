"""Jobs on edited source: which checks can see an edit at all, and a pool of servers to run them on."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from refengine.bugs.checks import CHECKS
from refengine.source_edits.imports import imported, names_of
from refengine.source_edits.loader import PACKAGE
from refengine.source_tree import ROOT

Outcome: TypeAlias = Literal["holds", "violated", "crashed", "hung"]
# Imported once per server, before it forks.
PRELOAD = (
    *("torch", "transformers.models.llama.modeling_llama", "transformers.models.mistral.modeling_mistral"),
    *("pytest", "hypothesis"),
)


@dataclass(frozen=True)
class Job:
    """Edited modules with their whole texts, and the checks to run on them. `first`: end at the first violated one."""

    name: str
    sources: dict[str, str]
    checks: tuple[str, ...]
    first: bool = False
    seconds: float = 30.0


@dataclass(frozen=True)
class Answer:
    """What one check said about one job."""

    check: str
    outcome: Outcome
    detail: str = ""
    witness: dict[str, Any] = field(default_factory=dict)
    tv: str | None = None


def checks_that_load(modules: Sequence[str]) -> tuple[str, ...]:
    """The checks that import any of these modules, however indirectly. No other can see an edit of them."""
    return tuple(check for check in CHECKS if not loaded_by(check).isdisjoint(modules))


@cache
def loaded_by(check: str) -> frozenset[str]:
    """The modules of this package that a check imports, however indirectly."""
    module, _, name = check.partition(":")
    if module != "pytest":
        return imported(f"refengine.bugs.checks.{module}")
    return frozenset().union(*(imported(found) for found in names_of(ROOT / name.partition("::")[0])))


class Servers:
    """A pool of server processes. Answers come in the order of the jobs, whatever the order in which they end."""

    def __init__(self, count: int = 2) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false"}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(PACKAGE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        )
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "refengine.bugs.process.fork_server", *PRELOAD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for _ in range(count)
        ]
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for process in self._processes:
            self._free.put(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            if error:
                process.kill()
            process.wait()
            process.stdout.close()

    def run(self, jobs: Sequence[Job], done: Callable[[Job], None] = lambda job: None) -> Iterator[list[Answer]]:
        """The answers of every job; `done` is called as each ends."""

        def one(job: Job) -> list[Answer]:
            answers = self._ask(job)
            done(job)
            return answers

        with ThreadPoolExecutor(len(self._processes)) as pool:
            yield from pool.map(one, jobs)

    def _ask(self, job: Job) -> list[Answer]:
        process = self._free.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            asked = {"sources": job.sources, "checks": job.checks, "first": job.first, "seconds": job.seconds}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            self._free.put(process)
        if not line:
            raise RuntimeError(f"the server of {job.name} ended with code {process.wait()}")
        return [Answer(**answer) for answer in json.loads(line)]
