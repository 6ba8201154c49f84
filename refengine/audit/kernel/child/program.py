"""A program in any language as a subject: JSON lines on its standard input and output. Runs in the child.

The program is started once and answers until its input closes. Where it ends before, the next call starts it again, so
that an input which ends it says nothing of the others. One line asks for one call, in the
shapes of signatures.py; numbers are written so that they read back as the same float32:

    verify, verify_batch   {"p": ..., "q": ..., "draft": ..., "seed": n}
    round                  {"prefix": [...], "gamma": n, "seed": n}

It answers with one line, {"tokens": [...]}. In a `round` it may first ask for rows, as often as it likes, with
{"ask": "target", "tokens": [...]} or {"ask": "draft", "tokens": [...]}; the answer is {"row": [...]}. A program that
takes its randomness from `seed` can be replayed call by call.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import torch
from torch import Tensor

from refengine.audit.kernel.child.signatures import ContractBroken, as_list
from refengine.audit.kernel.request import MARK

MAX_LINE_BYTES = 1 << 24  # of an answer; a program that never ends its line would fill the memory
SHOWN_CHARACTERS = 200  # of an answer that is not understood
LAST_CHARACTERS = 400  # of standard error before the program ended


class Program:
    """The function that a running program computes: tokens, or a ContractBroken for the caller to raise.

    Raises RuntimeError when the program ends, with the last of its standard error.
    """

    __name__ = "the program"  # in the description of a call

    def __init__(self, subject: str, signature: str) -> None:
        self.signature = signature
        self.command = shlex.split(subject.removeprefix(MARK))
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        self.process: subprocess.Popen[bytes] | None = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        self.complaints.seek(0)  # or else what is read after a second start begins with zeros
        self.complaints.truncate()
        return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints)

    def __call__(self, *arguments: Any) -> Any:
        seed = int(torch.randint(2**53, (), generator=arguments[-1]))
        if self.signature == "round":
            target, draft, prefix, gamma, _ = arguments
            rows = {"target": target, "draft": draft}
            return self._tokens({"prefix": list(as_list(prefix)), "gamma": gamma, "seed": seed}, rows)
        p, q, drafted, _ = arguments
        return self._tokens({"p": p.tolist(), "q": q.tolist(), "draft": drafted.tolist(), "seed": seed}, {})

    def _tokens(self, line: dict[str, Any], rows: dict[str, Callable[[Any], Tensor]]) -> Any:
        """The answer to a call, whatever rows the program asks for on the way."""
        while True:
            printed = self._ask(line)
            try:
                match msgspec.json.decode(printed):
                    case {"tokens": tokens, "ask": str(which)} if which in rows and isinstance(tokens, list):
                        line = {"row": rows[which](tokens).tolist()}
                    case {"tokens": tokens, **others} if "ask" not in others:
                        return tokens
                    case _:
                        return ContractBroken(f'the program printed {shown(printed)}, not one line {{"tokens": [...]}}')
            except (msgspec.DecodeError, RecursionError):
                return ContractBroken(f"the program printed {shown(printed)}, which is no JSON")

    def _ask(self, line: dict[str, Any]) -> bytes:
        self.process = self.process or self._started()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(msgspec.json.encode(line) + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(self._end(self.process)) from None
        printed = self.process.stdout.readline(MAX_LINE_BYTES)
        if len(printed) == MAX_LINE_BYTES:  # the rest would be taken for the next answer
            self.process.kill()
            self.process = None
            return printed
        if not printed.endswith(b"\n"):
            raise RuntimeError(self._end(self.process))
        return printed.rstrip()

    def _end(self, process: "subprocess.Popen[bytes]") -> str:
        """How it ended."""
        self.process = None
        with suppress(BrokenPipeError):  # of half a line that it did not read
            process.communicate()
        code = process.returncode
        self.complaints.seek(0)
        words = " ".join(self.complaints.read().decode(errors="replace").split())[-LAST_CHARACTERS:]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"the program ended with {how} before it answered" + (f": {words}" if words else "")


def shown(printed: bytes) -> str:
    """The beginning of a line that a program printed."""
    return repr(printed[:SHOWN_CHARACTERS].decode(errors="replace"))
