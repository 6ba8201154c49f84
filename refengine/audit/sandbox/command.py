"""A foreign program that is run to its end: standard input in, standard output back, with limits of time and size."""

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress

from refengine.errors import BadInput

MAX_OUTPUT_BYTES = 1 << 24


def run(command: Sequence[str], given: bytes, seconds: float) -> bytes:
    """What the program prints. It is killed after `seconds`, with everything that it started.

    Raises BadInput where it cannot be started, hangs, prints without an end or exits with another code than 0.
    """
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        try:
            process = subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise BadInput(f"cannot start {command[0]!r}: {error.strerror}") from None
    printed, hung = _read(process, seconds)
    if hung:
        raise BadInput(f"{command[0]!r} did not answer within {seconds:g} s")
    if len(printed) > MAX_OUTPUT_BYTES:
        raise BadInput(f"{command[0]!r} prints without an end: more than {MAX_OUTPUT_BYTES >> 20} MiB")
    if process.returncode:
        raise BadInput(f"{command[0]!r} exited with {process.returncode}")
    return printed


def _read(process: "subprocess.Popen[bytes]", seconds: float) -> tuple[bytes, bool]:
    """What it prints, up to a little more than MAX_OUTPUT_BYTES, and whether the time was up before it ended."""
    assert process.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        with process.stdout:
            printed = process.stdout.read(MAX_OUTPUT_BYTES + 1)
        if len(printed) > MAX_OUTPUT_BYTES:
            _kill(process)
        process.wait()
    finally:
        timer.cancel()
        _kill(process)
    return printed, late.is_set()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """It and whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
