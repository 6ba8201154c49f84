"""Files: written whole or not at all, read or refused in one clear line."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from refengine.errors import BadInput

ROOM = 1 << 22  # bytes that a folder must have left: a report's page takes as many


def write_atomic(path: Path, text: str) -> None:
    """Write `text` so that, killed at any moment, `path` holds either all of it or what it held before.

    A device or a pipe is written to as it is. Raises BadInput, naming the file and the reason, where nothing can be
    written: a full disk, a read-only folder, a name that is a folder.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from None


def read_text(path: Path) -> str:
    """The text of a file. Raises BadInput, naming the file, where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text") from None


def json_of(text: str, name: str, **options: Any) -> Any:
    """The value of a JSON text, read with the `options` of json.loads. Raises BadInput naming `name` for no JSON."""
    try:
        return json.loads(text, **options)
    except BadInput:
        raise
    except json.JSONDecodeError as error:
        raise BadInput(f"{name} is not valid JSON: {error.msg} at line {error.lineno}") from None
    except RecursionError:
        raise BadInput(f"{name} is not valid JSON to read here: it is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        why = str(error).partition(":")[0]
        raise BadInput(f"{name} is not valid JSON to read here: {why}") from None


def each_key_once(name: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """An `object_pairs_hook` that raises BadInput for a key that an object of `name` has twice: readers take either."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            keys = [key for key, _ in pairs]
            raise BadInput(f"{name} gives the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
        return out

    return unique


def hold_standard_streams() -> None:
    """Open the null device where standard input, output or error is closed: else the next file or socket that is opened
    gets its number, and what is meant for a terminal is written into that."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
            os.set_inheritable(number, True)


def make_folder(path: Path) -> None:
    """A folder that files can be written in. Raises BadInput where there cannot be one."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(ROOM))  # a full disk takes a name, and says so at the first byte
    except OSError as error:
        raise BadInput(f"cannot write in {path}: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name is on disk too
    finally:
        os.close(folder)


def check_empty(folder: Path) -> None:
    """An empty folder, or one to be made; raises BadInput for any other."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} has something in it, or is a file: name an empty folder")
