"""`refengine fixtures`: models to try a server with."""

from pathlib import Path
from typing import Annotated

import typer

from refengine.files import check_empty

WeightsSeed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of the weights.")]


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder, or one to be made.")],
    seed: WeightsSeed = 0,
) -> None:
    """Write a tiny target and drafter, in the layout of transformers, whose law `audit endpoint --known` computes."""
    check_empty(folder)
    from refengine.commands.export_fixtures import export_fixtures

    export_fixtures(folder, seed)
    print(f"{folder}/target and {folder}/drafter written; {folder}/law.json says what law they have")
