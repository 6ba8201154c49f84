"""Our side of a conversation with an engine, and the claims about it: the suite of `audit/served` over two workers.

`Worker` is the process, `Side` the transport: texts of single words become ids, and back. Each way of speculating is
held to the same engine without; where the engine has a server, that is held to itself too.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from refengine.audit.adapters import Absent, Adapter, Engine, Kernels, speak
from refengine.audit.adapters.server import serving
from refengine.audit.common import Progress
from refengine.audit.served.ask import Answer, Ask, Choice, Failed, Gone, Refused
from refengine.audit.served.audit import Named
from refengine.audit.served.bench import Bench
from refengine.audit.served.endpoint import audited
from refengine.audit.served.transports.http import Server
from refengine.errors import BadInput
from refengine.report.finding import Finding, Recipe

START_SECONDS, CALL_SECONDS = 300.0, 60.0
STARTS = 20  # of a worker that dies: what ends it that often ends it always
NO_WORD = {"logprobs", "echo", "response_format"}  # options of a server's API
MOST_CHOICES = 16  # of a request: each has a seed of its own
SEEDS = 2**31  # what every engine takes
LAST_CHARACTERS = 300  # of what a worker printed before it ended
LAW = "law.json"  # of `refengine fixtures export`: words, end, prompts


class Worker:
    """An engine under its own Python. One request at a time; it is started again when it died.

    Raises Absent where something is not installed that it imports, BadInput where that is no Python.
    """

    def __init__(self, adapter: Adapter, engine: Engine | Kernels, python: str, folder: Path | None = None) -> None:
        self.adapter, self.engine, self.python, self.folder = adapter, engine, python, folder
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self.lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        try:
            self._version = self._start()
        except Failed as error:
            self.__exit__()
            raise BadInput(f"nothing answers under --python {python}: {error}") from None
        except BaseException:
            self.__exit__()
            raise

    @property
    def version(self) -> str:
        """Of the engine's package. Raises Absent: a converter may be there without its engine."""
        if self._version is None:
            raise Absent(f"{self.engine.package} is not installed under {self.python}: {self.adapter.install}")
        return self._version

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.complaints.close()

    def ask(self, seconds: float = CALL_SECONDS, **request: Any) -> dict[str, Any]:
        """The answer. Raises Failed where the engine raises, hangs or dies, Refused, Gone; Absent."""
        with self.lock:
            if self.process is None:
                if self.starts == STARTS:
                    raise Gone(f"{self.adapter.name} died {STARTS} times")
                self._start()
            return self._said(self._asked(request, seconds))

    def close(self) -> None:
        """Kill it with whatever it started."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        self.process.wait()
        self.process = None

    def _start(self) -> str | None:
        command = [self.python, str(Path(speak.__file__)), str(self.adapter.worker), self.engine.package]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.complaints,
                start_new_session=True,
                env=os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            )
        except OSError as error:
            raise BadInput(f"--python {self.python} cannot be started: {error.strerror}") from None
        self.starts += 1
        version: str | None = self._said(self._read(START_SECONDS))["ready"]
        if self.folder is not None:
            self._said(self._asked({"op": "open", "folder": str(self.folder)}, START_SECONDS))
        return version

    def _asked(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # then nothing can be read either
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        return self._read(seconds)

    def _read(self, seconds: float) -> dict[str, Any]:
        """One line; the worker answers a request with one, so what is read is its."""
        assert self.process is not None
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.close()
            raise Failed(f"{self.adapter.name} gave no answer within {seconds:g} s")
        line = self.process.stdout.readline()
        if line.endswith(b"\n"):
            return self._parsed(line)
        code = self.process.wait()
        self.close()
        self.complaints.seek(0)
        words = " ".join(self.complaints.read().decode(errors="replace").split())[-LAST_CHARACTERS:]
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise Failed(f"{self.adapter.name} died of {how}: {words}")

    def _parsed(self, line: bytes) -> dict[str, Any]:
        """The object of a line; what is none was printed by something else."""
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise Failed(f"{self.adapter.name} printed {line[:LAST_CHARACTERS].decode(errors='replace').strip()!r}")
        return said

    def _said(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "absent" in answer:
            raise Absent(f"{answer['absent']} under {self.python}: {self.adapter.install}")
        if "refused" in answer:
            raise Refused(answer["refused"])
        if "raised" in answer:
            raise Failed(f"{self.adapter.name} raised {answer['raised']}")
        return answer


@dataclass
class Side:
    """A worker under one way of speculating, as the suite asks: text in, text out."""

    worker: Worker
    way: str
    words: tuple[str, ...]
    end: int
    ids: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = {word: i for i, word in enumerate(self.words)}

    def send(self, ask: Ask) -> Answer:
        """Raises Refused for what an engine in the process has no word for, Failed, Gone."""
        if refused := NO_WORD & ask.options.keys():
            raise Refused(f"a function has no {', '.join(sorted(refused))}")
        if ask.chat or ask.stream or ask.more:
            raise Refused("a function has no chat, no stream and no list of prompts")
        if ask.seed is None and ask.temperature > 0:
            raise Refused("a function is always given a seed")
        options = dict(ask.options)
        if "bad_words" in options:
            options["bad_words"] = [self._ids(word) for word in options["bad_words"]]
        choices = int(options.pop("n", 1))
        return Answer(tuple(self._choice(ask, options, (ask.seed or 0) * MOST_CHOICES + i) for i in range(choices)))

    def _choice(self, ask: Ask, options: dict[str, Any], seed: int) -> Choice:
        """One completion. Some engines report the end, some do not: it is never part of the text here."""
        said = self.worker.ask(
            op="generate",
            way=self.way,
            prompt=self._ids(" ".join(ask.turns)),
            tokens=ask.tokens,
            temperature=ask.temperature,
            seed=seed % SEEDS,
            options=options,
        )
        tokens = said["tokens"]
        ended = bool(tokens) and tokens[-1] == self.end
        kept = tokens[:-1] if ended else tokens
        text = " ".join(self.words[t] if 0 <= t < len(self.words) else f"<{t}>" for t in kept)
        return Choice(text, "stop" if ended or len(kept) < ask.tokens else "length")

    def _ids(self, text: str) -> list[int]:
        try:
            return [self.ids[word] for word in text.split()]
        except KeyError as error:
            raise Refused(f"{error} is no word of the model") from None


@dataclass(frozen=True)
class EngineAudit:
    """The claims about an engine under one Python. folder: of `refengine tiny`; requests: of each way."""

    adapter: Adapter
    engine: Engine
    python: str
    folder: Path
    recipe: Recipe
    requests: int
    only: str
    alpha: float
    progress: Progress

    def run(self, begins: str) -> Iterator[Finding]:
        """Of the ways of speculating whose names begin so: "draft model", "server, draft model"."""
        for way in self.engine.ways:
            if way.startswith(begins):
                yield from self._in_process(way)
        for way in self.engine.served:
            if f"server, {way}".startswith(begins):
                yield from self._served(way)

    def _in_process(self, way: str) -> Iterator[Finding]:
        law = self._law()
        with ExitStack() as stack:
            workers = [
                stack.enter_context(Worker(self.adapter, self.engine, self.python, self.folder)) for _ in range(2)
            ]
            on, off = (
                Side(worker, name, tuple(law["words"]), int(law["end"]))
                for worker, name in zip(workers, (way, ""), strict=True)
            )
            named = self._named(way, workers[0].version)
            yield from self._audited(Bench(on, off, law["prompts"], together=False), named)

    def _served(self, way: str) -> Iterator[Finding]:
        assert self.engine.serve is not None
        with ExitStack() as stack:
            version = stack.enter_context(Worker(self.adapter, self.engine, self.python)).version
            named = self._named(f"server, {way}", version)
            try:
                started = [
                    stack.enter_context(
                        serving(self.engine.serve, self.python, self.folder, kind, self.adapter.install)
                    )
                    for kind in (way, "")
                ]
            except Absent as absent:
                yield _untested(named, str(absent))
                return
            on, off = (stack.enter_context(Server(base, model)) for base, model in started)
            yield from self._audited(Bench(on, off, self._law()["prompts"]), named)

    def _law(self) -> dict[str, Any]:
        law: dict[str, Any] = json.loads((self.folder / LAW).read_text())
        return law

    def _named(self, way: str, version: str) -> Named:
        kind = way.replace(", ", "/").replace(" ", "-")
        return Named(f"engine/{self.adapter.name}/{kind}", f"{self.engine.package} {version}, {way}", self.recipe)

    def _audited(self, bench: Bench, named: Named) -> Iterator[Finding]:
        try:
            yield from audited(bench, named, self.progress, self.requests, self.only, self.alpha)
        except BadInput as error:
            yield _untested(named, str(error))


def _untested(named: Named, reason: str) -> Finding:
    return named.finding(
        "there", "Both sides take a plain request.", verdict="not tested", reason=reason, method="none"
    )
