"""`refengine rules`, `bugs`, `claims` and `checkpoints`: the rules by their cards, the catalogue, claims with their
evidence, released pairs."""

from typing import Annotated

import typer

from refengine.cli.output import coloured, print_json, print_rows
from refengine.cli.reporting import AsJson
from refengine.errors import BadInput


def bugs(
    about: Annotated[str, typer.Argument(help="Part of a class or an id, such as `row slip`; all without it.")] = "",
    as_json: AsJson = False,
) -> None:
    """The catalogue of real defects: each as an edit of our source, and the classes that no edit can express."""
    from refengine.bugs.catalogue import all_bugs
    from refengine.bugs.catalogue.classes import KNOWN

    rows = [{"id": b.id, "class": b.law_class, "title": b.title, "source": b.source} for b in all_bugs()]
    rows += [{"id": "no edit", "class": k.law_class, "title": k.title, "source": k.source} for k in KNOWN]
    rows = [row for row in rows if about in row["id"] or about in row["class"]]
    if not rows:
        raise BadInput(f"no defect has {about!r} in its class or id")
    print_rows(rows, as_json)


def rules(as_json: AsJson = False) -> None:
    """The verification rules: which candidates each judges, and what the emitted tokens follow."""
    from refengine.exact.rules import RULES

    rows = [
        {
            "rule": card.name,
            "candidates": f"{card.shape}, {'drawn ' + card.drawn if card.drawn else 'drawn in any way or not'}",
            "law": card.law if card.lossless else "lossy by design",
            "source": card.source,
        }
        for card in RULES.values()
    ]
    print_rows(rows, as_json)


def claims(
    about: Annotated[str, typer.Argument(help="Part of an id, such as `block` or `seed_003`; all without it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Every claim with its source, verdict and evidence."""
    check_that_one_has(about)
    from refengine.selfcheck.claims.claims import load

    found = [claim for claim in load() if about in claim.id]
    if as_json:
        print_json([claim.record() for claim in found])
        return
    for claim in found:
        told = claim.summary()
        typer.echo(f"{coloured(told['verdict'])} {told['id']}")
        for part, indent in (("claim", 4), ("evidence", 8), ("chain", 8)):
            for line in told[part].splitlines():
                typer.echo(" " * indent + line)


def checkpoints(
    about: Annotated[str, typer.Argument(help="Part of a name or a layout, such as `dspark`; all without it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Released drafters with their targets, the layouts they are read by, and the figures that were published."""
    from dataclasses import asdict

    from refengine.commands.released import pairs

    found = [pair for pair in pairs() if about.lower() in f"{pair.drafter} {pair.target} {pair.layout}".lower()]
    if not found:
        raise BadInput(f"no released pair has {about!r} in its names or its layout")
    if as_json:
        print_json([asdict(pair) for pair in found])
        return
    for pair in found:
        typer.echo(f"{pair.drafter} for {pair.target}")
        figures = [line for published in pair.figures for line in published.lines()]
        for line in (f"read as {pair.layout}; named in {pair.source}", pair.note, *figures):
            if line:
                typer.echo(f"    {line}")
        if not figures:
            typer.echo("    published figures: unknown")


def check_that_one_has(about: str) -> None:
    """Raises BadInput where no claim has this in its id; the sources say so before torch is imported."""
    import tomllib

    from refengine.source_tree import PROOFS

    files = sorted((PROOFS / "claims").glob("*.toml"))
    ids = [claim["id"] for file in files for claim in tomllib.loads(file.read_text(encoding="utf-8")).get("claim", [])]
    if ids and not any(about in name for name in ids):
        raise BadInput(f"no claim has {about!r} in its id")
