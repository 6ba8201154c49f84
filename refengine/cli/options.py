"""Options that several commands have, and what is wrong with their values."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from refengine.errors import BadInput

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
