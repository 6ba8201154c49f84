"""An engine's server on loopback, started and stopped: the address and the name of the model."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from refengine.audit.adapters import Absent, Serving

START_SECONDS = 600.0  # of a busy machine; one that ends is not waited for
PAUSE = 0.5
LAST_CHARACTERS = 300  # of what it printed before it ended


@contextmanager
def serving(serve: Serving, python: str, folder: Path, way: str, install: str) -> Iterator[tuple[str, str]]:
    """(base address up to /v1, the model's name). Raises Absent where it does not come up; the message says why."""
    port = _free_port()
    command, model = serve(python, folder, way, port)
    base = f"http://127.0.0.1:{port}/v1"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
        try:
            if not _up(process, base):
                log.seek(0)
                words = " ".join(log.read().decode(errors="replace").split())[-LAST_CHARACTERS:]
                raise Absent(f"its server does not come up: {words}: {install}")
            yield base, model
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _up(process: "subprocess.Popen[bytes]", base: str) -> bool:
    """Whether it answers before it ends or the time is up."""
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with suppress(httpx.HTTPError):
            httpx.get(base + "/models", timeout=5.0)
            return True
        time.sleep(PAUSE)
    return False
