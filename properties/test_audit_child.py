"""The child process: each way a subject can end has its own outcome."""

from pathlib import Path

import numpy as np
import pytest

from refengine.audit.child import Child

WORKER = """
import os, sys, time
from refengine.audit.child import subject_code

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
            if request == "die":
                os.abort()
            if request == "print":
                print("x" * 100000)
                os.write(1, b"noise")
            if request == "hash":
                return hash("seed")
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
    """Bug: a crash of the subject, or of our adapter, counted as a detection."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", environment={"PYTHONPATH": str(tmp_path)}) as process:
        outcome = process.ask(request_, 0.5 if request_ == "hang" else 60)
        assert (outcome.kind, outcome.value) == (kind, None)
        assert message in outcome.message


def test_the_child_goes_on_after_a_raise_and_stays_dead_after_a_hang(tmp_path: Path) -> None:
    """Bug: one bad input ends the audit of every other input; a reply that comes late answers the next request."""
    (tmp_path / "worker.py").write_text(WORKER)
    with Child("worker:make", environment={"PYTHONPATH": str(tmp_path)}) as process:
        assert process.ask("raise", 60).kind == "raised"
        assert process.ask("print", 60).value == "print"
        assert process.ask("hang", 0.5).kind == "hang"
        assert process.ask("print", 60).kind == "hang"


def test_arrays_cross_the_pipe_and_hashes_are_fixed(tmp_path: Path) -> None:
    """Bug: a report that differs between runs because set order does; an array that loses dtype or shape."""
    (tmp_path / "worker.py").write_text(WORKER)
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    hashes = []
    for _ in range(2):
        with Child("worker:make", environment={"PYTHONPATH": str(tmp_path)}) as process:
            back = process.ask({"a": array}, 60).value["a"]
            assert back.dtype == array.dtype
            assert (back == array).all()
            hashes.append(process.ask("hash", 60).value)
    assert hashes[0] == hashes[1]


def test_a_folder_of_the_subject_cannot_shadow_the_standard_library(tmp_path: Path) -> None:
    """Bug: a random.py beside the subject breaks our own imports."""
    (tmp_path / "random.py").write_text("raise ImportError('shadowed')")
    with Child("refengine.audit.child_echo:make", path=str(tmp_path)) as process:
        outcome = process.ask(1, 60)
    assert outcome.kind == "adapter"
    assert "child_echo" in outcome.message
