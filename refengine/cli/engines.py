"""`refengine audit engine` and `refengine tiny`: engines by name, under a Python of their own."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from refengine.cli import checks
from refengine.cli.fixtures import WeightsSeed
from refengine.cli.options import Alpha, Only, Requests, check_alpha, check_requests
from refengine.cli.output import finish_grouped
from refengine.cli.reporting import SUITE, Reporting, reports
from refengine.evidence.alpha import ALPHA
from refengine.files import check_empty
from refengine.report.terminal import progress

Python = Annotated[str | None, typer.Option(help="The Python that the engine is installed under; by default this one.")]


@reports(SUITE)
def engine(
    name: Annotated[str, typer.Argument(help="A folder of refengine/audit/adapters: transformers, mlx_lm, ...")],
    python: Python = None,
    way: Annotated[str, typer.Option(help="Only the ways of speculating that begin so: `server`, `draft`.")] = "",
    requests: Requests = 1000,
    only: Only = "",
    alpha: Alpha = ALPHA,
    *,
    reporting: Reporting,
) -> None:
    """Audit an installed engine on a tiny model, every way of speculating and its server (docs/auditing.md)."""
    from refengine.audit.adapters import check_engine, check_way

    check_alpha(alpha)
    check_requests(requests)
    check_engine(name)
    check_way(name, way)
    checks.python(python)
    from refengine.commands.audit_engine import audit_engine

    with progress() as tell:
        findings = audit_engine(name, python or sys.executable, way, requests, only, alpha, tell)
    finish_grouped(findings, reporting)


def tiny(
    layout: Annotated[str, typer.Argument(metavar="hf|onnx|openvino|mlx|gguf", help="Whose layout.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder, or one to be made.")],
    python: Python = None,
    seed: WeightsSeed = 0,
) -> None:
    """Write a tiny target and drafter in the layout that an engine loads, with law.json, which says their law."""
    from refengine.audit.adapters import check_format

    check_format(layout)
    check_empty(folder)
    checks.python(python)
    from refengine.commands.tiny import write_tiny

    write_tiny(layout, folder, python or sys.executable, seed)
    print(f"{folder} has the pair in the layout {layout}; {folder}/law.json says what law they have")
