"""`refengine audit`: hold an implementation to the law it promises."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urlsplit

import typer

from refengine.cli import checks
from refengine.cli.output import (
    AllowUntested,
    AsJson,
    Badge,
    Files,
    Junit,
    Out,
    Sarif,
    Summary,
    finish,
    finish_grouped,
    print_rows,
    writable,
)
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.terminal import progress

SHOWN_LINES = 10  # of what a subject prints
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


class Signature(StrEnum):
    """The plain signatures of an audited function (docs/auditing.md)."""

    verify = "verify"
    verify_batch = "verify_batch"
    round = "round"


def kernel(
    subject: Annotated[str, typer.Argument(help="MODULE:FUNCTION.")],
    signature: Annotated[Signature, typer.Option(help="Which plain signature the function has.")] = Signature.verify,
    path: Annotated[Path | None, typer.Option(help="Folder to put on the import path.")] = None,
    seed: Seed = "0",
    alpha: Alpha = ALPHA,
    seconds: Seconds = None,
    calls: Calls = None,
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
) -> None:
    """Audit a verification function: rows and drafts in, tokens out."""
    check_folder(path)
    folder = str(path) if path else None
    called(
        subject,
        signature,
        folder,
        seed,
        as_json,
        Files(out, junit, sarif, summary, badge),
        alpha=alpha,
        seconds=seconds,
        calls=calls,
    )


def library(
    name: Annotated[str, typer.Argument(help="One of the libraries that are listed without it.")] = "",
    only: Annotated[str, typer.Option(help="Only the parts whose names begin so: kernel, `generate two`.")] = "",
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
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
        print_rows(rows, as_json)
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
    finish(found, as_json, Files(out, junit, sarif, summary, badge))


def process(
    command: Annotated[list[str], typer.Argument(help="The program: JSON lines in, one answer out per call.")],
    signature: Annotated[Signature, typer.Option(help="Which plain signature its calls have.")] = Signature.verify,
    seed: Seed = "0",
    alpha: Alpha = ALPHA,
    seconds: Seconds = None,
    calls: Calls = None,
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
) -> None:
    """Audit a program in any language: rows and drafts in, tokens out (docs/auditing.md)."""
    called(
        "$ " + shlex.join(command),
        signature,
        None,
        seed,
        as_json,
        Files(out, junit, sarif, summary, badge),
        alpha=alpha,
        seconds=seconds,
        calls=calls,
    )


def called(
    subject: str, signature: Signature, path: str | None, seed: str, as_json: bool, files: Files, **limits: Any
) -> NoReturn:
    """The audit of what is called with rows and drafts. What is mistyped is said before torch is imported."""
    from refengine.audit.kernel.request import Request

    request = Request(subject, signature.value, path, seed_of(seed), **limits)
    request.check_that_it_exists()
    from refengine.audit.sandbox.forkserver import start_ahead

    start_ahead(request.preload())  # it imports torch while this process imports the evidence
    from refengine.audit.kernel.audit import audited

    with progress() as tell:
        found = audited(request, tell)
    tell_printed(subject, found.printed)
    finish([found.finding], as_json, files, found.advice)


def tell_printed(subject: str, printed: str) -> None:
    """What the subject printed, on standard error: the first lines, and how many there are."""
    lines = printed.splitlines()
    if lines:
        typer.echo(f"{subject} printed {len(lines)} line{'s' * (len(lines) > 1)}:", err=True)
        typer.echo("\n".join(f"    {line}" for line in lines[:SHOWN_LINES]), err=True)
        if len(lines) > SHOWN_LINES:
            typer.echo(f"    ... and {len(lines) - SHOWN_LINES} more", err=True)


def trace(
    record: Annotated[Path, typer.Argument(metavar="FILE", help="safetensors with p, q, draft and emitted.")],
    alpha: Alpha = ALPHA,
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
) -> None:
    """Audit an engine's own record of its rounds (docs/auditing.md). Nothing is run."""
    check_alpha(alpha)
    checks.readable(record)
    from refengine.audit.trace import audit_trace

    with progress() as tell:
        findings = audit_trace(str(record), alpha, progress=tell)
    finish(findings, as_json, Files(out, junit, sarif, summary, badge))


class Drafts(StrEnum):
    """How the drafts of a known law come about (docs/auditing.md)."""

    drawn = "drawn"
    argmax = "argmax"


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
    allow_untested: AllowUntested = False,
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
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
    finish_grouped(found, as_json, Files(out, junit, sarif, summary, badge), allow_untested)


Prompts = Annotated[Path | None, typer.Option(help="A file with a prompt on each line.")]
Requests = Annotated[int, typer.Option(help="Most that are sent to both sides together.")]
Only = Annotated[str, typer.Option(help="Look only at the claims whose names begin so: parity/top_k, state, law.")]


def endpoint(
    on: Annotated[str, typer.Option(help="Base address of the server with speculation, up to /v1.")],
    off: Annotated[str | None, typer.Option(help="The same model without; not needed with --known.")] = None,
    known: Annotated[Path | None, typer.Option(help="A folder of `fixtures export` whose target --on serves.")] = None,
    model: Annotated[str | None, typer.Option(help="As the servers call it, where they need it.")] = None,
    requests: Requests = 3000,
    prompts: Prompts = None,
    only: Only = "",
    journal: Annotated[Path | None, typer.Option(help="A file that keeps answers; a second run goes on.")] = None,
    alpha: Alpha = ALPHA,
    allow_untested: AllowUntested = False,
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
) -> None:
    """Audit an OpenAI-compatible server with speculation on, beside one with it off (docs/serving.md)."""
    files = Files(out, junit, sarif, summary, badge)
    if known is not None:
        if off is not None or prompts is not None or only or journal is not None:
            raise BadInput("--known needs one server and has prompts: without --off, --prompts, --only and --journal")
        check_alpha(alpha)
        check_requests(requests)
        check_address(on)
        checks.exported(known)
        from refengine.audit.served.endpoint import audit_known

        with progress() as tell:
            findings = audit_known(on, str(known), requests, model, alpha, progress=tell)
        finish_grouped(findings, as_json, files, allow_untested)
    if off is None:
        raise BadInput("name the same without speculation with --off URL, or a model of known law with --known DIR")
    asked = questions(requests, prompts, only, alpha) | {"journal": str(journal) if journal else None}
    check_address(on)
    check_address(off)
    from refengine.audit.served.endpoint import audit_served

    with progress() as tell:
        findings = audit_served(on, off, model=model, progress=tell, **asked)
    finish_grouped(findings, as_json, files, allow_untested)


def generate(
    on: Annotated[str, typer.Argument(metavar="ON", help="MODULE:FUNCTION with speculation.")],
    off: Annotated[str | None, typer.Option(help="MODULE:FUNCTION, the same without speculation.")] = None,
    path: Annotated[Path | None, typer.Option(help="Folder to put on the import path.")] = None,
    requests: Requests = 3000,
    prompts: Prompts = None,
    only: Only = "",
    alpha: Alpha = ALPHA,
    allow_untested: AllowUntested = False,
    as_json: AsJson = False,
    out: Out = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    badge: Badge = None,
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
    finish_grouped(findings, as_json, Files(out, junit, sarif, summary, badge), allow_untested)


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


def check_folder(path: Path | None) -> None:
    if path is not None and not path.is_dir():
        raise BadInput(f"--path {path} is not a folder")


def check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise BadInput(f"--alpha {alpha} is not between 0 and 1")


def check_requests(requests: int) -> None:
    if requests < 1:
        raise BadInput(f"--requests {requests} is not a positive number")


def lines_of(file: Path) -> list[str]:
    """The lines of a text file that say something."""
    from refengine.files import read_text

    lines = [line for line in read_text(file).splitlines() if line.strip()]
    if not lines:
        raise BadInput(f"{file} has no prompt in it")
    return lines


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
