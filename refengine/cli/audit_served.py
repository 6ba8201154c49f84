"""`refengine audit endpoint` and `generate`: speculation on, compared with speculation off or with a known law."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from refengine.cli import checks
from refengine.cli.checks import Alpha, Only, Requests, check_alpha, check_folder, check_requests
from refengine.cli.output import finish_grouped
from refengine.cli.reporting import SUITE, Reporting, reports
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.terminal import progress

Prompts = Annotated[Path | None, typer.Option(help="A file with a prompt on each line.")]


@reports(SUITE)
def endpoint(
    on: Annotated[str, typer.Option(help="Base address of the server with speculation, up to /v1.")],
    off: Annotated[str | None, typer.Option(help="The same model without; not needed with --known.")] = None,
    known: Annotated[Path | None, typer.Option(help="A folder of `fixtures export` whose target --on serves.")] = None,
    model: Annotated[str | None, typer.Option(help="As the servers call it, where they need it.")] = None,
    requests: Requests = 3000,
    prompts: Prompts = None,
    only: Only = "",
    journal: Annotated[Path | None, typer.Option(help="A file that keeps answers; a second run goes on.")] = None,
    vocabulary: Annotated[
        int, typer.Option(min=0, help="Tokens of the model; ids are asked for up to this, or up to those in answers.")
    ] = 0,
    law_choices: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="The most choices of a sampled request, 64: fewer where large batches do not speculate."
        ),
    ] = None,
    alpha: Alpha = ALPHA,
    *,
    reporting: Reporting,
) -> None:
    """Audit an OpenAI-compatible server with speculation on, beside one with it off (docs/serving.md)."""
    if known is not None:
        others = {"--off": off, "--prompts": prompts, "--only": only, "--journal": journal, "--vocabulary": vocabulary}
        others["--law-choices"] = law_choices
        if given := [name for name, value in others.items() if value]:
            raise BadInput(f"--known needs one server and has its own prompts: without {' and '.join(given)}")
        check_alpha(alpha)
        check_requests(requests)
        check_address(on)
        checks.exported(known)
        from refengine.audit.served.endpoint import audit_known

        with progress() as tell:
            findings = audit_known(on, str(known), requests, model, alpha, progress=tell)
        finish_grouped(findings, reporting)
    if off is None:
        raise BadInput("name the same without speculation with --off URL, or a model of known law with --known DIR")
    kept = {"journal": str(journal) if journal else None, "vocabulary": vocabulary}
    kept |= {"law_choices": law_choices} if law_choices else {}
    asked = questions(requests, prompts, only, alpha) | kept
    check_address(on)
    check_address(off)
    from refengine.audit.served.endpoint import audit_served

    with progress() as tell:
        findings = audit_served(on, off, model=model, progress=tell, **asked)
    finish_grouped(findings, reporting)


@reports(SUITE)
def generate(
    on: Annotated[str, typer.Argument(metavar="ON", help="MODULE:FUNCTION with speculation.")],
    off: Annotated[str | None, typer.Option(help="MODULE:FUNCTION, the same without speculation.")] = None,
    path: Annotated[Path | None, typer.Option(help="Folder to put on the import path.")] = None,
    requests: Requests = 3000,
    prompts: Prompts = None,
    only: Only = "",
    alpha: Alpha = ALPHA,
    *,
    reporting: Reporting,
) -> None:
    """Audit a generate function with speculation on, beside the same with it off (docs/serving.md)."""
    if off is None:
        raise BadInput(f"{on} is held to the same without speculation: name that with --off MODULE:FUNCTION")
    check_folder(path)
    asked = questions(requests, prompts, only, alpha)
    from refengine.audit.kernel.request import Request

    for side in (on, off):
        Request(side, "verify", str(path) if path else None).check_that_it_exists()
    from refengine.audit.served.endpoint import audit_generate

    with progress() as tell:
        findings = audit_generate(on, off, str(path) if path else None, progress=tell, **asked)
    finish_grouped(findings, reporting)


def check_address(base: str) -> None:
    try:
        parts = urlsplit(base)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and base.isprintable()
    except ValueError:  # a port that is none, half an IPv6 address
        good = False
    if not good or " " in base:
        raise BadInput(f"{base} is no address of a server: http://HOST:PORT/v1 is one")


def questions(requests: int, prompts: Path | None, only: str, alpha: float) -> dict[str, Any]:
    """What two sides are asked, from the command line; prompts of our own unless others are given."""
    check_alpha(alpha)
    check_requests(requests)
    asked = {"requests": requests, "only": only, "alpha": alpha}
    return asked | ({"prompts": lines_of(prompts)} if prompts else {})


def lines_of(file: Path) -> list[str]:
    """The lines of a text file that say something."""
    from refengine.files import read_text

    lines = [line for line in read_text(file).splitlines() if line.strip()]
    if not lines:
        raise BadInput(f"{file} has no prompt in it")
    return lines
