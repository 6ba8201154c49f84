"""Options that several commands have, and what is wrong with values and files, said before torch is imported."""

import os
import shutil
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from refengine.errors import BadInput
from refengine.source_tree import PACKAGE

CONFIGS = ("config.json", "params.json")  # params.json in Meta's own layout
Seed = Annotated[str, typer.Option(help="A number, or `random`; alpha is the false-alarm rate of a random one.")]
Alpha = Annotated[float, typer.Option(help="False-alarm rate of the audit.")]
Seconds = Annotated[
    float | None,
    typer.Option(help="When the clock ends it; by default after ten minutes, with --calls never."),
]
Calls = Annotated[
    int | None,
    typer.Option(help="How many are sampled; by default 10,000 to 50,000 by signature, fewer of a slow function."),
]
Requests = Annotated[int, typer.Option(help="Most that are sent to both sides together.")]
Only = Annotated[str, typer.Option(help="Look only at the claims whose names begin so: parity/top_k, state, law.")]


class Signature(StrEnum):
    """The plain signatures of an audited function (docs/auditing.md)."""

    verify = "verify"
    verify_batch = "verify_batch"
    round = "round"


def check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise BadInput(f"--alpha {alpha} is not between 0 and 1")


def check_requests(requests: int) -> None:
    if requests < 1:
        raise BadInput(f"--requests {requests} is not a positive number")


def check_folder(path: Path | None) -> None:
    if path is not None and not path.is_dir():
        raise BadInput(f"--path {path} is not a folder")


def seed_of(text: str) -> int:
    """A seed from the command line."""
    if text == "random":
        import secrets

        return secrets.randbits(32)
    try:
        seed = int(text)
    except ValueError:
        raise BadInput(f"--seed {text!r} is neither a number nor `random`") from None
    if not -(2**63) <= seed < 2**63:
        raise BadInput(f"--seed {text} has more than 64 bits")
    return seed


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
