"""Writing files: whole or not at all, and one clear line where it cannot be done."""

import os
import tempfile
from pathlib import Path

from refengine.errors import BadInput


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


def make_folder(path: Path) -> None:
    """A folder that files can be written in. Raises BadInput where there cannot be one."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
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
