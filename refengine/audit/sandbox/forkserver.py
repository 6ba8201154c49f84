"""A fork server: an interpreter that has imported what its children need and nothing else, and forks on request.

Importing torch takes longer than the audit of a small function, and an audit wants three or four processes in which no
subject has run. A fork of an interpreter that has only imported is such a process: no thread was started in it, no
generator moved, no line of a subject read. A process keeps one fork server for each list of imports, until it ends.

The standard library's fork server (multiprocessing) has neither limits nor a way to kill what a child has started, and
runs the parent's main module in every child; so this one is our own.
"""

import atexit
import ctypes
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from refengine.audit.sandbox.framing import frame, received
from refengine.files import hold_standard_streams
from refengine.source_tree import PACKAGE

# No folder is put before the standard library: a subject's folder may hold a random.py.
BOOTSTRAP = """
import sys
sys.path.append(sys.argv[1])
from refengine.audit.sandbox.child import serve
from refengine.audit.sandbox.forkserver import main
main(int(sys.argv[2]), sys.argv[3:], serve)
"""

MAX_ADOPTED = 100  # generations of processes that are killed, one after the other
ENDING_SECONDS = 2.0  # that a server has to end by itself

# One thread, one hash seed: the same seed gives the same bytes. Warnings of a subject are not ours to judge.
FIXED_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONWARNINGS": "ignore",
    "PYTHONIOENCODING": "utf-8:backslashreplace",  # what it prints is read so, whatever the locale here is
}


class Server:
    """The auditing process's side. One request at a time, whichever thread asks. preload: the modules it imports."""

    def __init__(self, preload: Sequence[str]) -> None:
        root = str(PACKAGE.parent)
        self.owner = os.getpid()  # a fork of the auditing process must not talk on its parent's line
        self._lock = threading.Lock()
        hold_standard_streams()
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOTSTRAP, root, str(theirs.fileno()), *preload],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,
            )

    def ask(self, request: dict[str, Any], files: list[int]) -> Any:
        """The reply. Raises ConnectionError where the interpreter has ended."""
        with self._lock:
            socket.send_fds(self._line, [b"+"], files)
            self._line.sendall(frame(request))
            return received(partial(_recv, self._line))

    def close(self) -> None:
        self._line.close()  # at which it ends, with what subjects have left behind
        if self.owner == os.getpid():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_SECONDS)
            self._process.kill()
            self._process.wait()


class Forked:
    """A process that serves requests as `child.serve(..., *arguments)` does, and writes what it prints to `log`.

    requests, replies   the pipe's ends
    """

    def __init__(self, preload: tuple[str, ...], arguments: Sequence[str | int], log: IO[bytes]) -> None:
        reads, ours = os.pipe()
        mine, writes = os.pipe()
        self.requests, self.replies = os.fdopen(ours, "wb"), os.fdopen(mine, "rb")
        request = {"serve": list(arguments), "environment": _environment(), "folder": os.getcwd()}
        self._server, self.pid = _start(preload, request, [reads, writes, log.fileno()])
        self._code: int | None = None
        os.close(reads)
        os.close(writes)

    def ended(self) -> int:
        """Wait for its end: the exit code, or the signal that killed it as a negative number."""
        if self._code is None:
            try:
                self._code = int(self._server.ask({"wait": self.pid}, []))
            except (ConnectionError, OSError):  # its server is gone, and its children end with it
                self._code = -signal.SIGKILL
        return self._code

    def kill(self) -> None:
        """Kill it with everything it started. Safe to call twice."""
        if self._code is None:  # until it has been waited for, no other process can have its number
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.ended()


_servers: dict[tuple[str, ...], Server] = {}  # by what they have imported
_starting = threading.Lock()


def start_ahead(preload: tuple[str, ...]) -> None:
    """Start this process's server, if there is none, and do not wait: it imports while its owner does."""
    with _starting:
        _running(preload)


def _running(preload: tuple[str, ...]) -> Server:
    """This process's server, started where there is none; `_starting` is held."""
    server = _servers.get(preload)
    if server is None or server.owner != os.getpid():
        server = _servers[preload] = Server(preload)
    return server


def _start(preload: tuple[str, ...], request: dict[str, Any], files: list[int]) -> tuple[Server, int]:
    """A new process of this process's server; where that has died, of another one."""
    for _ in range(2):
        with _starting:
            server = _running(preload)
        with suppress(ConnectionError):
            return server, int(server.ask(request, files))
        with _starting:
            if _servers.get(preload) is server:
                _servers.pop(preload).close()
    raise RuntimeError("the interpreter that children are forked from ended twice; what it printed is above")


@atexit.register
def _close() -> None:
    while _servers:
        _servers.popitem()[1].close()


def _environment() -> dict[str, str]:
    return {**os.environ, **FIXED_ENVIRONMENT}


def _recv(line: socket.socket, size: int) -> bytes:
    return line.recv(size, socket.MSG_WAITALL)


# --- the server's side -----------------------------------------------------------------------------------------------


def main(line: int, preload: Sequence[str], serve: Callable[..., None]) -> None:
    """Fork and wait as requested, until the auditing process ends."""
    for module in preload:
        with suppress(Exception):  # a library that cannot be imported fails in the child, which says so
            importlib.import_module(module)
    gc.freeze()
    _adopt()
    running: set[int] = set()
    with socket.socket(fileno=line) as connection:
        while True:
            mark, files, _, _ = socket.recv_fds(connection, 1, 3, socket.MSG_CMSG_CLOEXEC)
            if not mark:
                return _kill_adopted(running)
            request = received(partial(_recv, connection))
            if "wait" in request:
                reply = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
                running.discard(request["wait"])
                if not running:
                    _kill_adopted(running)
            else:
                reply = _fork(connection, request, files, serve)
                running.add(reply)
            connection.sendall(frame(reply))


def _adopt() -> None:
    """Become the parent of processes whose own has ended: a subject may start one that leaves its group. Linux only."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _kill_adopted(running: set[int]) -> None:
    """Kill every child but those that run for the auditing process; those of a killed one come up in its place."""
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    for _ in range(MAX_ADOPTED):
        with suppress(OSError):
            adopted = {int(pid) for pid in own.read_text().split()} - running
            if not adopted:
                return
            for pid in adopted:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _fork(connection: socket.socket, request: dict[str, Any], files: list[int], serve: Callable[..., None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            connection.close()
            _settle(request, files[2])
            with os.fdopen(files[0], "rb") as requests, os.fdopen(files[1], "wb") as replies:
                serve(requests, replies, *request["serve"])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    with suppress(PermissionError, ProcessLookupError):  # it did so itself, or has ended
        os.setpgid(pid, pid)  # here too: the asker may kill the group as soon as it has the number
    for file in files:
        os.close(file)
    return pid


def _settle(request: dict[str, Any], log: int) -> None:
    """What a fresh interpreter would have of its own, or from the process that started it."""
    os.setpgid(0, 0)  # killed with everything it starts
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.dup2(log, 2)
    os.dup2(2, 1)  # a subject that prints must not speak on our pipe
    np.random.seed()  # Python's own generator does so by itself
