"""`refengine audit kernel`, `process`, `trace`, `library` and `acceptance`: functions, programs, records, libraries."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from refengine.cli import checks
from refengine.cli.checks import Alpha, Calls, Seconds, Seed, Signature, check_alpha, check_folder, seed_of
from refengine.cli.output import finish, finish_grouped, print_rows
from refengine.cli.reporting import AUDIT, SUITE, Reporting, reports, writable
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.terminal import progress

SHOWN_LINES = 10  # of what a subject prints


@reports(AUDIT)
def kernel(
    subject: Annotated[str, typer.Argument(help="MODULE:FUNCTION.")],
    signature: Annotated[Signature, typer.Option(help="Which plain signature the function has.")] = Signature.verify,
    path: Annotated[Path | None, typer.Option(help="Folder to put on the import path.")] = None,
    seed: Seed = "0",
    alpha: Alpha = ALPHA,
    seconds: Seconds = None,
    calls: Calls = None,
    *,
    reporting: Reporting,
) -> None:
    """Audit a verification function: rows and drafts in, tokens out."""
    check_folder(path)
    folder = str(path) if path else None
    called(
        subject,
        signature,
        folder,
        seed,
        reporting,
        alpha=alpha,
        seconds=seconds,
        calls=calls,
    )


@reports(AUDIT)
def process(
    command: Annotated[list[str], typer.Argument(help="The program: JSON lines in, one answer out per call.")],
    signature: Annotated[Signature, typer.Option(help="Which plain signature its calls have.")] = Signature.verify,
    seed: Seed = "0",
    alpha: Alpha = ALPHA,
    seconds: Seconds = None,
    calls: Calls = None,
    *,
    reporting: Reporting,
) -> None:
    """Audit a program in any language: rows and drafts in, tokens out (docs/auditing.md)."""
    called(
        "$ " + shlex.join(command),
        signature,
        None,
        seed,
        reporting,
        alpha=alpha,
        seconds=seconds,
        calls=calls,
    )


def called(
    subject: str, signature: Signature, path: str | None, seed: str, reporting: Reporting, **limits: Any
) -> NoReturn:
    """The audit of what is called with rows and drafts. What is mistyped is said before torch is imported."""
    from refengine.audit.kernel.request import Request

    request = Request(subject, signature.value, path, seed_of(seed), **limits)
    request.check_that_it_exists()
    from refengine.audit.sandbox.child import WORKER
    from refengine.audit.sandbox.forkserver import start_ahead

    start_ahead(WORKER)  # it imports torch while this process imports the evidence
    from refengine.audit.kernel.audit import audited

    with progress() as tell:
        found = audited(request, tell)
    tell_printed(subject, found.printed)
    finish([found.finding], reporting, found.advice)


def tell_printed(subject: str, printed: str) -> None:
    """What the subject printed, on standard error: the first lines, and how many there are."""
    lines = printed.splitlines()
    if lines:
        typer.echo(f"{subject} printed {len(lines)} line{'s' * (len(lines) > 1)}:", err=True)
        typer.echo("\n".join(f"    {line}" for line in lines[:SHOWN_LINES]), err=True)
        if len(lines) > SHOWN_LINES:
            typer.echo(f"    ... and {len(lines) - SHOWN_LINES} more", err=True)


@reports(AUDIT)
def trace(
    record: Annotated[Path, typer.Argument(metavar="FILE", help="safetensors with p, q, draft and emitted.")],
    alpha: Alpha = ALPHA,
    *,
    reporting: Reporting,
) -> None:
    """Audit an engine's own record of its rounds (docs/auditing.md). Nothing is run."""
    check_alpha(alpha)
    checks.readable(record)
    from refengine.audit.trace import audit_trace

    with progress() as tell:
        findings = audit_trace(str(record), alpha, progress=tell)
    finish(findings, reporting)


@reports(AUDIT)
def library(
    name: Annotated[str, typer.Argument(help="One of the libraries that are listed without it.")] = "",
    only: Annotated[str, typer.Option(help="Only the parts whose names begin so: kernel, `generate two`.")] = "",
    *,
    reporting: Reporting,
) -> None:
    """Audit an installed library by its name; without one, list the libraries and what is installed of them."""
    from refengine.audit.adapters import Absent, adapters

    known = adapters()
    if not name:
        rows = []
        for adapter in known.values():
            try:
                state = f"version {adapter.version()}"
            except Absent as absent:
                state = str(absent)
            rows.append({"library": adapter.name, "state": state, "audits": len(adapter.audits)})
        print_rows(rows, reporting.as_json)
        return
    if name not in known:
        raise BadInput(f"no library is called {name!r}: one of {', '.join(known)}")
    parts = [part for part in known[name].audits if part.startswith(only)]
    if not parts:
        raise BadInput(
            f"{name} has no part that is called {only}...: {', '.join(known[name].audits)}"
            if known[name].audits
            else f"{name} has no parts of its own to audit: refengine audit engine {name}"
        )
    with progress() as tell:
        found = list(known[name].audit(tell, only))
    finish(found, reporting)


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
