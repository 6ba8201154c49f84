"""`refengine audit acceptance`: what an engine counts of its drafts, compared with what is due."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from refengine.cli import checks
from refengine.cli.options import Alpha, check_alpha
from refengine.cli.output import finish_grouped
from refengine.cli.reporting import SUITE, Reporting, reports, writable
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.terminal import progress


class Drafts(StrEnum):
    """How the drafts of a known law come about (docs/auditing.md)."""

    drawn = "drawn"
    argmax = "argmax"


@reports(SUITE)
def acceptance(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help="What the engine counted.")] = None,
    since: Annotated[Path | None, typer.Option(help="An earlier scrape of the same counters.")] = None,
    golden: Annotated[Path | None, typer.Option(help="What is due: a profile.")] = None,
    known: Annotated[Path | None, typer.Option(help="What is due: the law of a folder of `fixtures export`.")] = None,
    save_golden: Annotated[
        Path | None, typer.Option(callback=writable, help="Write a profile, and judge nothing.")
    ] = None,
    draft_tokens: Annotated[int | None, typer.Option(help="Tokens of a round, where the file counts tokens.")] = None,
    drafts: Annotated[Drafts, typer.Option(help="Of a known law: drawn from q, or its argmax.")] = Drafts.drawn,
    model: Annotated[str | None, typer.Option(help="Which, where a file counts for several.")] = None,
    margin: Annotated[float, typer.Option(help="By how much a share may differ from what is due.")] = 0.02,
    alpha: Alpha = ALPHA,
    *,
    reporting: Reporting,
) -> None:
    """Audit how often an engine says that it keeps its drafts (docs/auditing.md). Nothing is run."""
    check_alpha(alpha)
    if not 0 <= margin < 1:
        raise BadInput(f"--margin {margin} is not between 0 and 1")
    if draft_tokens is not None and draft_tokens < 1:
        raise BadInput(f"--draft-tokens {draft_tokens} is not a positive number")
    if not files and not (save_golden and known):
        raise BadInput("name what the engine counted: a scrape of /metrics, answers, a log or a profile")
    if (golden is None) == (known is None) and not save_golden:
        raise BadInput("name what is due: --golden FILE or --known DIR, one of them; or write one with --save-golden")
    checks.readable(*[file for file in (*(files or ()), since, golden) if file is not None])
    if known is not None:
        checks.exported(known)
    from refengine.audit.acceptance import audit

    names = [str(file) for file in files or ()]
    given: dict[str, Any] = {"since": since and str(since), "known": known and str(known), "drafts": drafts.value}
    given |= {"draft_tokens": draft_tokens, "model": model}
    if save_golden is not None:
        with progress() as tell:
            said = audit.save_golden(names, **given, out=save_golden, progress=tell)
        typer.echo(said)
        return
    with progress() as tell:
        given |= {"golden": golden and str(golden), "margin": margin, "alpha": alpha}
        found = audit.audit_acceptance(names, **given, progress=tell)
    finish_grouped(found, reporting)
