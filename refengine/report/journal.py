"""Journal: what a long run has found so far, on disk, so that kill -9 loses at most the steps that were running.

One line per finished step, appended in a single write and fsynced at once. A line counts only for the same step under
the same run key: a digest of this package's sources, the environment, the seed, the error budget and the options. A
line cut off at the end of the file is dropped; damage anywhere else is refused, never guessed at.
"""

import fcntl
import hashlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

import refengine
from refengine.errors import BadInput
from refengine.report.canonical import canonical, parse
from refengine.report.finding import Finding
from refengine.report.report import environment

BEGINS = b'{"how":'  # every line, its keys being sorted


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finished step as it stands in the journal.

    made  what came of it: findings in a report, counts in a campaign
    how   whether it ran or is from a committed record
    """

    run: str
    step: str
    seconds: float
    made: Any
    how: str = ""


def sources() -> str:
    """A digest of this package's source, the same on every machine that has it."""
    seen = hashlib.sha256()
    root = Path(refengine.__file__).parent
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        seen.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return seen.hexdigest()


def run_key(*, seed: int, alpha: float, options: str = "") -> str:
    """Names everything that findings depend on: sources, package versions, seed, error budget and options."""
    parts = {
        "sources": sources(),
        "environment": environment(),
        "seed": seed,
        "alpha": float(alpha),
        "options": options,
    }
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


class Journal:
    """Finished steps of a run, read on opening and appended to; holds the file locked until closed.

    fresh  empties the file first
    made   the type of what a step makes

    `other` is the key of another run whose steps the file holds too, "" where there is none. Raises BadInput where
    another process has it open, where it is damaged, and where no file can be written there.
    """

    def __init__(self, path: Path, run: str, *, fresh: bool = False, made: Any = list[Finding]) -> None:
        self._run, self._made, self._usable, self.other = run, made, True, ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise BadInput(f"cannot write {path}: {error.strerror}") from None
        try:
            self._lock(path)
            if fresh:
                os.ftruncate(self._file, 0)
            self._done = self._read(path)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self, path: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another run is writing {path}") from None

    def _read(self, path: Path) -> dict[str, Line]:
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        whole = data.rfind(b"\n") + 1  # what follows the last newline was cut off by the kill
        if not whole and not (data.startswith(BEGINS) or BEGINS.startswith(data)):
            raise BadInput(f"{path} is no journal: name a file that is not there yet")
        done: dict[str, Line] = {}
        for number, text in enumerate(data[:whole].splitlines(), start=1):
            try:
                line = msgspec.convert(parse(text.decode(), "it"), Line)
                if line.run == self._run:
                    made = msgspec.convert(line.made, self._made)
                    done.setdefault(line.step, msgspec.structs.replace(line, made=made))
                else:
                    self.other = line.run
            except ValueError as error:  # also UnicodeDecodeError and ValidationError
                raise BadInput(f"{path} is damaged at line {number} ({error}); --fresh starts over") from None
        os.ftruncate(self._file, whole)  # not before its lines have shown that it is a journal
        os.lseek(self._file, whole, os.SEEK_SET)
        return done

    def finished(self, step: str) -> Line | None:
        """What an earlier run with this key found in a step; None where it has to run."""
        return self._done.get(step)

    def append(self, line: Line) -> Line:
        """Record a finished step under this run's key; on return it survives kill -9 and power loss. A step is recorded
        once.

        Where the disk has no room the run goes on without the journal, and that is said.
        """
        if line.step in self._done:
            raise ValueError(f"step {line.step!r} is already in the journal")
        line = self._done[line.step] = msgspec.structs.replace(line, run=self._run)
        if self._usable:
            try:
                self._write(canonical(line, indent=None).encode())
            except OSError as error:
                self._usable = False
                print(f"refengine: no journal from here on: {error.strerror}", file=sys.stderr)
        return line

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
