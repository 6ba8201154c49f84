"""`refengine challenge`: fresh vectors for somebody else's engine, and a transcript that anyone can check."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from refengine.cli import checks
from refengine.cli.output import CONSISTENT, VIOLATED
from refengine.cli.reporting import Out
from refengine.errors import BadInput

SHOWN = 5  # wrong answers that are named
Seed = Annotated[str, typer.Option(help="The secret text that everything is made from; opened when answers are in.")]


def new(
    seed: Seed,
    out: Annotated[Path, typer.Option(help="File to write; not overwritten.")],
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule (may be repeated).")] = None,
) -> None:
    """Write questions, committed to the seed and to the expected answers by digest, without showing either."""
    checks.new(out)
    from refengine.commands import challenge
    from refengine.files import write_atomic
    from refengine.report.canonical import canonical

    made = challenge.new(seed, rule or [])
    write_atomic(out, canonical(made))
    typer.echo(f"written: {out}, {len(made['vectors'])} questions; answers digest {made['answers_digest']}")


def check(
    questions: Annotated[Path, typer.Argument(metavar="FILE", help="What `challenge new` wrote.")],
    answers: Annotated[Path, typer.Argument(help="JSON lines: the emitted tokens of each question, as a list.")],
    seed: Seed,
    out: Out = None,
) -> None:
    """Make the challenge and its answers again from the seed, compare, and sign the transcript's digest."""
    checks.readable(questions, answers)
    from refengine.commands import challenge
    from refengine.files import write_atomic
    from refengine.report.canonical import canonical

    given = [parsed(answers, line) for line in text_of(answers).splitlines() if line.strip()]
    transcript = challenge.judged(parsed(questions, text_of(questions)), given, seed)
    signed = challenge.signed(transcript, os.environ.get(challenge.KEY))
    if out is not None:
        write_atomic(out, canonical(signed))
    tell(transcript, signed["digest"], [])


def verify(
    transcript: Annotated[Path, typer.Argument(help="What `challenge check --out` wrote.")],
    digest: Annotated[str | None, typer.Option(help="The digest that was published when it was made.")] = None,
) -> None:
    """Make a transcript again from its seed and answers; the key of its HMAC is $REFENGINE_CHALLENGE_KEY."""
    checks.readable(transcript)
    from refengine.commands import challenge
    from refengine.commands.vectors_release import digest_of

    document = parsed(transcript, text_of(transcript))
    again, wrong = challenge.verified(document, os.environ.get(challenge.KEY), digest)
    tell(again, digest_of(document["transcript"]), wrong)


def tell(transcript: dict[str, Any], digest: str, wrong: list[str]) -> None:
    """The verdict and what it is about; exits with the verdict's code."""
    asked, missed = len(transcript["answers"]), transcript["wrong"]
    for name in missed[:SHOWN]:
        typer.echo(f"wrong: {name}")
    if len(missed) > SHOWN:
        typer.echo(f"and {len(missed) - SHOWN} more")
    typer.echo(f"transcript digest {digest}")
    counted = f"{asked - len(missed)} of {asked} answers are right"
    if wrong:
        typer.echo(f"VERDICT violated (the transcript does not hold: {'; '.join(wrong)})")
    else:
        typer.echo(f"VERDICT {'violated' if missed else 'consistent'} ({counted})")
    raise typer.Exit(VIOLATED if wrong or missed else CONSISTENT)


def text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}") from None


def parsed(file: Path, text: str) -> Any:
    from refengine.report.canonical import parse

    return parse(text, str(file))
