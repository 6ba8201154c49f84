"""`refengine vectors`: conformance vectors for implementations in any language."""

import json
from pathlib import Path
from typing import Annotated

import typer

from refengine.cli.output import CONSISTENT, VIOLATED, print_rows
from refengine.cli.reporting import AsJson
from refengine.errors import BadInput

MAX_SECONDS = 1e7  # what every clock can wait


def table(as_json: AsJson = False) -> None:
    """How many vectors there are of each rule."""
    from collections import Counter

    from refengine.exact.vectors import vectors

    counts = Counter(vector["rule"] for vector in vectors())
    print_rows([{"rule": rule, "vectors": count} for rule, count in counts.items()], as_json)


def export(file: Annotated[Path, typer.Argument(help="JSON lines file to write.")]) -> None:
    """Write every vector as one JSON line."""
    from refengine.exact.vectors import vectors
    from refengine.files import write_atomic

    if not file.absolute().parent.is_dir():
        raise BadInput(f"{file.parent} is not a folder")
    write_atomic(file, "".join(json.dumps(vector, sort_keys=True) + "\n" for vector in vectors()))
    typer.echo(f"written: {file}")


def release(folder: Annotated[Path, typer.Argument(help="Folder to write in.")]) -> None:
    """Write the versioned release of the vectors: JSON, its schema and SHA256SUMS."""
    from refengine.commands.vectors_release import write_release

    for file in write_release(folder):
        typer.echo(f"written: {file}")


def run(
    command: Annotated[list[str], typer.Argument(help="The program: JSON lines in, one list of tokens out per line.")],
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule (may be repeated).")] = None,
    seconds: Annotated[float, typer.Option(help="Wall-clock limit.")] = 60.0,
) -> None:
    """Run a program on the vectors and compare token by token."""
    if not 0 < seconds < MAX_SECONDS:
        raise BadInput(f"--seconds {seconds:g} is not a time: above 0, below {MAX_SECONDS:g}")
    from refengine.commands.vectors import run_command

    count, wrong = run_command(command, rule or [], seconds)
    for mismatch in wrong[:10]:
        typer.echo(str(mismatch))
    state = "violated" if wrong else "consistent"
    typer.echo(f"VERDICT {state} ({count - len(wrong)} of {count} vectors)")
    raise typer.Exit(VIOLATED if wrong else CONSISTENT)
