"""The child process: each way a subject can end has its own outcome."""

from collections.abc import Callable
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from refengine.audit.sandbox.child import Child

WORKER = """
import json, mmap, os, signal, subprocess, sys, time
from refengine.audit.sandbox.child import subject_code

def make():
    def handle(request):
        if request == "adapter":
            return {}["missing"]
        with subject_code():
            if request == "raise":
                raise RuntimeError("boom")
            if request == "exit":
                sys.exit(3)
            if request == "hang":
                time.sleep(60)
            if request == "memory":
                return len(bytearray(1 << 44))
            if request == "reserve":
                return len(mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)) >> 40
            if request == "die":
                os.abort()
            if request == "print":
                print("x" * 100000)
                os.write(1, b"noise")
            if request == "hash":
                return hash("seed")
            if request == "orphan":
                return subprocess.Popen(["sleep", "600"]).pid
            if request == "mark":
                seen, json.MARK = getattr(json, "MARK", None), 1
                return seen
            if request == "where":
                return [os.getcwd(), os.environ.get("REFENGINE_TEST")]
            if request == "patricide":
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(60)
        return request
    return handle
"""


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        ("raise", "raised", "RuntimeError: boom"),
        ("exit", "raised", "SystemExit: 3"),
        ("memory", "killed", "memory limit"),
        ("die", "killed", "SIGABRT"),
        ("hang", "hang", "no answer within 0.5 s"),
        ("adapter", "adapter", "KeyError: 'missing'"),
    ],
)
def test_every_end_has_its_own_outcome(tmp_path: Path, request_: str, kind: str, message: str) -> None:
    """Kills a crash of the subject, or of our adapter, counted as a detection."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", str(tmp_path)) as process:
        outcome = process.ask(request_, 0.5 if request_ == "hang" else 60)
        assert (outcome.kind, outcome.value) == (kind, None)
        assert message in outcome.message


def test_address_space_that_is_only_reserved_is_no_memory(tmp_path: Path) -> None:
    """Kills a limit that CUDA, Go and Java run into before they have used anything."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", str(tmp_path)) as process:
        assert process.ask("reserve", 60).value == 1


def test_the_child_goes_on_after_a_raise_and_stays_dead_after_a_hang(tmp_path: Path) -> None:
    """Kills one bad input ends the audit of every other input; a reply that comes late answers the next request."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", str(tmp_path)) as process:
        assert process.ask("raise", 60).kind == "raised"
        assert process.ask("print", 60).value == "print"
        assert process.ask("hang", 0.5).kind == "hang"
        assert process.ask("print", 60).kind == "hang"


def test_arrays_cross_the_pipe_and_hashes_are_fixed(tmp_path: Path) -> None:
    """Kills a report that differs between runs because set order does; an array that loses dtype or shape."""
    (tmp_path / "worker.py").write_text(WORKER)
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    hashes = []
    for _ in range(2):
        with Child("worker:make", str(tmp_path)) as process:
            back = process.ask({"a": array}, 60).value["a"]
            assert back.dtype == array.dtype
            assert (back == array).all()
            hashes.append(process.ask("hash", 60).value)
    assert hashes[0] == hashes[1]


def test_a_folder_of_the_subject_cannot_shadow_the_standard_library(tmp_path: Path) -> None:
    """Kills a random.py beside the subject breaks our own imports."""
    (tmp_path / "random.py").write_text("raise ImportError('shadowed')")
    with Child("refengine.audit.child_echo:make", path=str(tmp_path)) as process:
        outcome = process.ask(1, 60)
    assert outcome.kind == "adapter"
    assert "child_echo" in outcome.message


def test_no_child_sees_what_another_did(tmp_path: Path) -> None:
    """Kills a subject that a former one had already changed: found again in no process of a stranger's."""
    (tmp_path / "worker.py").write_text(WORKER)
    for _ in range(2):
        with Child("worker:make", str(tmp_path)) as process:
            assert process.ask("mark", 60).value is None
            assert process.ask("mark", 60).value == 1


def test_a_child_lives_in_the_folder_and_environment_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills variables that were set after the first audit of a session never reach a subject."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", str(tmp_path)) as process:
        assert process.ask("where", 60).value == [str(Path.cwd()), None]
    monkeypatch.setenv("REFENGINE_TEST", "set")
    monkeypatch.chdir(tmp_path)
    with Child("worker:make", str(tmp_path)) as process:
        assert process.ask("where", 60).value == [str(tmp_path), "set"]


def test_what_a_subject_started_ends_with_it(tmp_path: Path) -> None:
    """Kills servers and workers of a subject that hold memory and cores long after its audit."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", str(tmp_path)) as process:
        started = process.ask("orphan", 60).value
        assert _becomes(True, lambda: "sleep" in _command(started))  # a new process has no command line at first
    assert _becomes(False, lambda: "sleep" in _command(started))  # its new parent takes a moment to bury it


def _becomes(wanted: bool, asked: Callable[[], bool]) -> bool:
    for _ in range(100):
        if asked() == wanted:
            return True
        sleep(0.1)
    return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""


def test_a_subject_that_kills_its_parent_ends_only_itself(tmp_path: Path) -> None:
    """Kills one subject ends every audit that comes after it."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", str(tmp_path)) as process:
        assert process.ask("patricide", 30).kind == "killed"
    with Child("worker:make", str(tmp_path)) as process:
        assert process.ask("print", 60).value == "print"
