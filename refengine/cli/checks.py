"""What a command line says of files, checked before torch is imported. Each raises BadInput in one line."""

import os
import shutil
from pathlib import Path

from refengine.errors import BadInput
from refengine.source_tree import PACKAGE

CONFIGS = ("config.json", "params.json")  # params.json in Meta's own layout


def checkpoint_folder(folder: Path) -> None:
    if not any((folder / name).is_file() for name in CONFIGS):
        missing = "has no config.json, so it is no checkpoint folder" if folder.is_dir() else "is no folder here"
        raise BadInput(f"{folder} {missing} (nothing is downloaded)")


def drafter(folder: Path) -> None:
    """A checkpoint folder, or the name of a drafter without files; the loader says which drafters have none."""
    named = str(folder) in {file.stem for file in (PACKAGE / "decoder" / "drafters").glob("*.py")}
    if folder.exists() or not named:
        checkpoint_folder(folder)


def readable(*files: Path) -> None:
    for file in files:
        if file.is_dir():
            raise BadInput(f"{file} is a folder, not a file")
        if not file.exists():
            raise BadInput(f"{file}: no such file")
        if not os.access(file, os.R_OK):
            raise BadInput(f"{file} cannot be read: permission denied")


def exported(folder: Path) -> None:
    """What `fixtures export` wrote."""
    if not (folder / "law.json").is_file():
        raise BadInput(f"{folder} is no folder of `refengine fixtures export`: it has no law.json")


def python(command: str | None) -> None:
    """The Python of an engine."""
    if command is not None and shutil.which(command) is None:
        raise BadInput(f"--python {command} cannot be started: there is no such program")


def new(out: Path, suffix: str = "") -> None:
    """Something that is written and is not there yet."""
    if suffix and out.suffix != suffix:
        raise BadInput(f"{out}: the output's name must end in {suffix}")
    if out.exists():
        raise BadInput(f"{out} is there already: it is not overwritten")
    if not out.absolute().parent.is_dir():
        raise BadInput(f"{out.parent} is not a folder")
