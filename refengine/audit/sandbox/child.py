"""Third-party and edited code runs here: a fresh process with limits, answering requests over a pipe.

The parent side is `Child`: it starts the process, sends one request at a time and always gets an `Outcome` back, never
an exception of the subject's. The child side builds a handler by calling the *factory* it was named, and then answers
each request with `handler(request)`. A handler marks every step into foreign code with `subject_code()`, so that the
exceptions of the subject and those of our adapter have different outcomes:

    result    the handler returned
    raised    the subject raised; `message` is the last line of its traceback, and where in the subject's own files
    hang      no answer within the time limit; the process is killed
    killed    the process died: a signal, an exit, or the memory limit
    adapter   our own handler raised; that is our bug and never says anything about the subject

Requests and replies are anything msgpack carries, and numpy arrays. What the subject prints goes to a scratch file,
which `printed` reads. A handler that calls `alive` before each step into foreign code may take as long as it likes: the
time limit of a request is then that of one step.
"""

import importlib
import os
import resource
import select
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from refengine.audit.sandbox.forkserver import Forked
from refengine.audit.sandbox.framing import HEADER, decode, frame, received
from refengine.source_tree import PACKAGE

Handler: TypeAlias = Callable[[Any], Any]
Failure: TypeAlias = Literal["raised", "hang", "killed", "adapter"]
Kind: TypeAlias = Literal["result"] | Failure

START_SECONDS = 120.0  # a cold import of torch and transformers on a loaded machine
BEAT_SECONDS = 0.2  # how often a child says that it is alive, at most
WORKER = ("refengine.audit.kernel.child.worker",)  # what the children of most audits have imported
MAX_PRINTED_BYTES = 1 << 16  # of what a subject prints, that are passed on
MAX_MESSAGE = 400  # characters of what a subject says of its own error


@dataclass(frozen=True)
class Outcome:
    """The outcome of one request. `value` is set for `result`, `message` (one line) for everything else."""

    kind: Kind
    value: Any = None
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.kind == "result"

    def __str__(self) -> str:
        words = {"raised": "the subject raised", "hang": "the subject hung", "killed": "the subject's process died"}
        ours = "our own code around the subject failed (a bug of ours, or the subject replaced what it calls)"
        return f"{words.get(self.kind, ours)}: {self.message}"


class SubjectRaised(Exception):
    """Foreign code raised; the message is the last line of its traceback, and where in its own files."""


class OutOfMemory(Exception):
    """Foreign code reached the memory limit."""


@contextmanager
def subject_code() -> Iterator[None]:
    """Everything in this block is foreign: its exceptions are the subject's."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(str(error)) from error
    except BaseException as error:  # SystemExit and KeyboardInterrupt included: a subject that calls sys.exit()
        said, place = last_line(error), place_in_subject(error)
        if "can't allocate memory" in said:  # torch's allocator says it with a RuntimeError
            raise OutOfMemory(said) from error
        raise SubjectRaised(f"{said} ({place})" if place else said) from error
    finally:
        if os.getpid() != (_pulse.process or os.getpid()):
            os._exit(0)  # foreign code has forked: its copy must not answer on our pipe


def last_line(error: BaseException) -> str:
    """The type and the message of an exception in one line, also where its text has several, or cannot be made."""
    said = traceback.format_exception_only(error)[-1]
    line = " ".join("".join(c if c.isprintable() else " " for c in said[: 1 << 16]).split())
    return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}..."


def place_in_subject(error: BaseException) -> str:
    """FILE:LINE of the innermost frame that is neither ours nor a library's; "" where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_below_the_path(error.filename)}:{error.lineno}"
    libraries = *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), str(PACKAGE)
    for step in reversed(traceback.extract_tb(error.__traceback__)):
        if os.path.isfile(step.filename) and not step.filename.startswith(libraries):
            return f"{_below_the_path(step.filename)}:{step.lineno}"
    return ""


def _below_the_path(file: str) -> str:
    """A file as the import path has it, so that a report names no folder of this machine."""
    folders = [folder for folder in sys.path if folder and file.startswith(folder.rstrip("/") + "/")]
    return os.path.relpath(file, max(folders, key=len)) if folders else os.path.basename(file)


class Child:
    """A process that runs `factory` ("package.module:function") and answers requests. Use it in a `with` block.

    path        a folder that is put on the child's import path, after ours; None: the current folder
    preload     modules that its fork server imports once for all children that name the same ones
    memory_gib  that can be written; address space is reserved by the terabyte (CUDA, Go, Java) and is not counted
    """

    def __init__(
        self,
        factory: str,
        path: str | None = None,
        preload: tuple[str, ...] = WORKER,
        memory_gib: int = 12,
    ) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._process = Forked(preload, (factory, path or os.getcwd(), memory_gib), self._log)
        self._pending = bytearray()
        self._ready: Outcome | None = None

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: Any, seconds: float) -> Outcome:
        """Send a request and wait for the reply, at most `seconds` since the child was last heard of; starting up is
        not counted."""
        if self._ready is None:
            self._ready = self._receive(START_SECONDS)
        if not self._ready.ok:
            return self._ready
        return self._receive(seconds) if self._send(request) else self._death()

    def printed(self) -> str:
        """What foreign code has printed until its last reply, cut after MAX_PRINTED_BYTES."""
        log = self._log.fileno()  # the child writes where this file stands, so nothing may move it
        return "" if self._log.closed else os.pread(log, MAX_PRINTED_BYTES, 0).decode(errors="replace")

    def close(self) -> None:
        """Kill whatever still runs. Safe to call twice."""
        self._process.kill()
        for stream in (self._process.requests, self._process.replies, self._log):
            with suppress(BrokenPipeError):
                stream.close()

    def _send(self, request: Any) -> bool:
        try:
            self._process.requests.write(frame(request))
            self._process.requests.flush()
        except (BrokenPipeError, ValueError):
            return False
        return True

    def _receive(self, seconds: float) -> Outcome:
        deadline, pipe = time.monotonic() + seconds, self._process.replies.fileno()
        while True:
            if len(self._pending) >= HEADER:
                size = HEADER + int.from_bytes(self._pending[:HEADER], "little")
                if len(self._pending) >= size:
                    kind, value, message = decode(bytes(self._pending[HEADER:size]))
                    del self._pending[:size]
                    if kind != ALIVE:
                        return Outcome(kind, value, message)
                    deadline = time.monotonic() + seconds
                    continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                self._process.kill()
                self._ready = Outcome("hang", message=f"no answer within {seconds:g} s")
                return self._ready
            piece = os.read(pipe, 1 << 20)
            if not piece:
                return self._death()
            self._pending += piece

    def _death(self) -> Outcome:
        """The pipe is closed: say how the process ended, with the last thing it printed."""
        code = self._process.ended()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        self._ready = Outcome("killed", message=f"{how}; {lines[-1]}" if lines else how)
        return self._ready


# --- the child's side ------------------------------------------------------------------------------------------------


def serve(requests: IO[bytes], replies: IO[bytes], factory: str, path: str, memory_gib: int) -> None:
    """Serve requests until they close. The fork that it runs in does nothing else."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = memory_gib << 30 if most == resource.RLIM_INFINITY else min(memory_gib << 30, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    handler: list[Handler] = []
    _pulse.replies, _pulse.process = replies, os.getpid()
    replies.write(frame(_guarded(lambda: handler.append(_build(factory, path)))))
    replies.flush()
    while True:
        try:
            request = received(requests.read)
        except ConnectionError:
            return
        reply = frame(_guarded(partial(handler[0], request)))
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a subject may have closed or replaced it
                stream.flush()
        _cut_log()
        try:
            replies.write(reply)
            replies.flush()
        except OSError:
            print("it closed the pipe through which it answers", file=sys.stderr, flush=True)
            os._exit(1)


def _cut_log() -> None:
    """Forget what was printed beyond what is passed on: a subject that prints at every call must not fill the disk."""
    with suppress(OSError):  # a subject may have closed it
        if os.fstat(2).st_size > 2 * MAX_PRINTED_BYTES:
            os.truncate(2, MAX_PRINTED_BYTES)
            os.lseek(2, MAX_PRINTED_BYTES, os.SEEK_SET)


@dataclass
class Pulse:
    """The pipe on which a child says that it is alive, when it last did, and which process it is."""

    replies: IO[bytes] | None = None
    last: float = 0.0
    process: int | None = None


ALIVE = "alive"
_pulse = Pulse()


def alive() -> None:
    """Tell the parent that a step into foreign code begins: its time limit starts anew."""
    now = time.monotonic()
    if _pulse.replies is not None and now - _pulse.last > BEAT_SECONDS:
        _pulse.last = now
        _pulse.replies.write(frame((ALIVE, None, "")))
        _pulse.replies.flush()


def _build(factory: str, path: str) -> Handler:
    module, _, name = factory.partition(":")
    sys.path.append(path)
    make: Callable[[], Handler] = getattr(importlib.import_module(module), name)
    return make()


def _guarded(work: Callable[[], Any]) -> tuple[Kind, Any, str]:
    try:
        return "result", work(), ""
    except SubjectRaised as error:
        return "raised", None, str(error)
    except (OutOfMemory, MemoryError):
        return "killed", None, "the memory limit was reached"
    except Exception as error:
        return "adapter", None, f"{traceback.format_exception_only(error)[-1].strip()} ({_place(error)})"


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _die_with(parent: int) -> None:
    """A subject in an endless loop must not outlive a parent that was killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
