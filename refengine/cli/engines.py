"""`refengine audit engine`, `tiny` and `fixtures export`: engines by name, and tiny models to try engines with."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from refengine.cli import checks
from refengine.cli.checks import Alpha, Only, Requests, check_alpha, check_requests
from refengine.cli.output import finish_grouped
from refengine.cli.reporting import SUITE, Reporting, reports
from refengine.evidence.alpha import ALPHA
from refengine.files import check_empty
from refengine.report.terminal import progress

Python = Annotated[str | None, typer.Option(help="The Python that the engine is installed under; by default this one.")]
WeightsSeed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of the weights.")]


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
    """Write a tiny target and drafter in the layout that an engine loads, and law.json: what they emit, exactly."""
    from refengine.audit.adapters import check_format

    check_format(layout)
    check_empty(folder)
    checks.python(python)
    from refengine.commands.tiny import write_tiny

    write_tiny(layout, folder, python or sys.executable, seed)
    print(f"{folder} has the pair in the layout {layout}; {folder}/law.json says what law they have")


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder, or one to be made.")],
    seed: WeightsSeed = 0,
) -> None:
    """Write a tiny target and drafter, in the layout of transformers, whose law `audit endpoint --known` computes."""
    check_empty(folder)
    from refengine.commands.export_fixtures import export_fixtures

    export_fixtures(folder, seed)
    print(f"{folder}/target and {folder}/drafter written; {folder}/law.json says what law they have")
