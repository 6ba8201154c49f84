"""`refengine report`, `rerun` and `law`: the report, a report made again, and the exact law of one round."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from refengine.cli.output import CONSISTENT, VIOLATED, print_rows
from refengine.cli.reporting import AsJson, writable

Against = Annotated[Path | None, typer.Option(help="An earlier report.json: the page begins with what changed.")]


def report(
    out: Annotated[Path, typer.Option(help="Folder for report.json, report.html and run.json.")] = Path("out"),
    full: Annotated[bool, typer.Option("--full", help="Run again what is on record too, and compare.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when any subject is violated.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore the journal of an interrupted run.")] = False,
    against: Against = None,
) -> None:
    """The whole correctness report on the embedded fixtures and on whatever real libraries are installed."""
    from refengine.files import make_folder
    from refengine.report.report import load_report

    old = load_report(against) if against else None
    make_folder(out)
    from refengine.commands.report import write_report

    outcome = write_report(out, full=full, fresh=fresh, against=(old, str(against)) if old else None, say=typer.echo)
    raise typer.Exit(VIOLATED if outcome.failed or (strict and outcome.subjects_violated) else CONSISTENT)


def show(
    files: Annotated[list[Path], typer.Argument(metavar="REPORT...", help="What audits wrote with --out.")],
    page: Annotated[Path, typer.Option(callback=writable, help="The page to write.")] = Path("report.html"),
    against: Against = None,
) -> None:
    """Reports of audits on one page. Nothing is run."""
    from refengine.commands.show import show as write
    from refengine.report.changes import lines

    report, found = write(files, page, against)
    for line in lines(found) if found else ():
        typer.echo(line)
    counts = Counter(finding.verdict for finding in report.findings)
    typer.echo(f"{page}: {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}")


def rerun(
    report_file: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json.")],
    finding: Annotated[str, typer.Argument(help="A finding's id, or the beginning of several; all without it.")] = "",
) -> None:
    """Make findings again and compare: verdicts, integers and witnesses exactly, floats within tolerance."""
    from refengine.report.report import environment_differences, load_report
    from refengine.report.rerun import rerun as again

    loaded = load_report(report_file)
    if finding:
        loaded.beginning_with(finding)  # a mistyped id is said before torch is imported
    import torch

    torch.set_num_threads(1)  # as the report that is compared with
    for line in environment_differences(loaded):
        typer.echo(f"note: another version made this report: {line}", err=True)
    outcomes = again(loaded, finding)
    for outcome in outcomes:
        typer.echo(str(outcome))
    confirmed = sum(outcome.confirmed for outcome in outcomes)
    typer.echo(f"RERUN {confirmed} of {len(outcomes)} findings confirmed")
    raise typer.Exit(CONSISTENT if confirmed == len(outcomes) else VIOLATED)


def law(
    file: Annotated[Path, typer.Argument(help="JSON with rule, p and q (or tokens); docs/laws.md.")],
    vocabulary: Annotated[
        int | None, typer.Option(min=1, help="Of your model, for the bound on rounding [default: that of the rows].")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Emitted, for the bound on rounding [default: one round's at most].")
    ] = None,
    gamma: Annotated[
        int | None, typer.Option(min=0, help="Drafts of a block, for the bound on rounding [default: of the file].")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The exact law of one round of a rule, on rows of your own, and how far floats may be from it."""
    from refengine.commands.law import answer, read
    from refengine.commands.rounding import in_floats, rounded_up

    asked = read(file)
    found = answer(asked)
    siblings = max(map(asked.parents.count, asked.parents), default=0)
    longest = len(asked.parents) if gamma is None else gamma
    sizes = vocabulary or len(asked.p[0]), tokens or len(asked.p), siblings, longest
    found["in floats"] = bound = in_floats(asked.rule, *sizes)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for key in ("law", "accepted"):
        name = "emitted" if key == "law" else "accepted"
        print_rows([{name: outcome, "probability": mass} for outcome, mass in found[key].items()], as_json=False)
    if found["first"] < len(asked.p):
        typer.echo(f" emitted: the first {found['first']} of at most {len(asked.p)} tokens, and so is the distance")
    for key in ("expected tokens", "TV from the target"):
        if found[key] is not None:
            typer.echo(f" {key}: {found[key]}")
    if bound is None:
        typer.echo(f" in floats: no theorem bounds what {asked.rule} loses")
        return
    whose = "the target's argmax" if asked.rule == "greedy" else "the normalised target"
    blocks = f" gamma at most {bound['gamma']}," if asked.rule == "block" else ""
    typer.echo(f" in floats, {bound['tokens']} tokens of {bound['vocabulary']},{blocks} from {whose}:")
    for key in [key for key in bound if key.startswith("TV")]:
        typer.echo(f"  {key}: {rounded_up(str(bound[key]))}")
