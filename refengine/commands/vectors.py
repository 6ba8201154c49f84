"""Somebody's program held to the conformance vectors of `exact/vectors.py`: JSON lines in, tokens out."""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from refengine.errors import BadInput
from refengine.exact.vectors import LOSSLESS, vectors

OUTPUT_BYTES = 1 << 24  # that a program may print: its answers have some thousand


@dataclass(frozen=True)
class Mismatch:
    """A vector that came out differently."""

    vector: dict[str, Any]
    answer: Any

    def __str__(self) -> str:
        asked = {key: self.vector[key] for key in ("p", "q", "tokens", "parents", "uniforms")}
        return f"{self.vector['id']}: expected {self.vector['emitted']}, got {self.answer} for {json.dumps(asked)}"


def run_command(command: Sequence[str], rules: Sequence[str], seconds: float = 60.0) -> tuple[int, list[Mismatch]]:
    """Feed every vector, one JSON line each, to `command`; it answers each with a JSON list of the emitted tokens.

    Returns (vectors run, mismatches). Raises BadInput when the program can't be started, dies, hangs or does not speak
    JSON: that is no mismatch.
    """
    unknown = set(rules) - set(LOSSLESS)
    if unknown:
        raise BadInput(f"unknown rule {sorted(unknown)[0]!r}: one of {', '.join(LOSSLESS)}")
    chosen = [vector for vector in vectors() if not rules or vector["rule"] in rules]
    questions = [{k: v for k, v in vector.items() if k not in ("emitted", "path")} for vector in chosen]
    answers = ask(command, [json.dumps(question) for question in questions], seconds)
    wrong = [Mismatch(v, a) for v, a in zip(chosen, answers, strict=True) if a != v["emitted"]]
    return len(chosen), wrong


def ask(command: Sequence[str], lines: Sequence[str], seconds: float) -> list[Any]:
    """One answer per line from a program that is stopped after `seconds`, with whatever it started."""
    with tempfile.TemporaryFile() as questions:
        questions.write("".join(f"{line}\n" for line in lines).encode())
        questions.seek(0)
        try:
            child = subprocess.Popen(command, stdin=questions, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise BadInput(f"cannot start {command[0]!r}: {error.strerror}") from None
    out, hung = _read(child, seconds)
    if hung:
        raise BadInput(f"{command[0]!r} did not answer within {seconds:g} s")
    if len(out) > OUTPUT_BYTES:
        raise BadInput(f"{command[0]!r} prints without an end: more than {OUTPUT_BYTES >> 20} MiB")
    if child.returncode:
        raise BadInput(f"{command[0]!r} exited with {child.returncode}")
    answers = out.decode(errors="replace").splitlines()
    if len(answers) != len(lines):
        raise BadInput(f"{command[0]!r} gave {len(answers)} lines for {len(lines)} vectors")
    return [_parsed(command[0], answer) for answer in answers]


def _read(child: "subprocess.Popen[bytes]", seconds: float) -> tuple[bytes, bool]:
    """What it prints, up to a little more than OUTPUT_BYTES, and whether the time was up before it ended."""
    assert child.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(child)

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        with child.stdout:
            out = child.stdout.read(OUTPUT_BYTES + 1)
        if len(out) > OUTPUT_BYTES:
            _kill(child)
        child.wait()
    finally:
        timer.cancel()
        _kill(child)
    return out, late.is_set()


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """It and whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _parsed(program: str, answer: str) -> Any:
    try:
        return json.loads(answer)
    except (json.JSONDecodeError, RecursionError):
        raise BadInput(f"{program!r} answered something that is not JSON: {answer[:60]!r}") from None
