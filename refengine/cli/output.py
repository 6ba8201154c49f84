"""What every command prints, and what it exits with."""

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from refengine.audit.in_few_words import in_few_words
from refengine.cli.reporting import Reporting
from refengine.errors import BadInput

if TYPE_CHECKING:
    from refengine.report.finding import Finding

CONSISTENT, VIOLATED, BAD_INPUT, NOT_TESTED, INTERNAL = 0, 1, 2, 3, 70


def finish(findings: "Sequence[Finding]", reporting: Reporting, advice: str = "") -> NoReturn:
    """Print what was found and the verdict line, write it where it was asked for, and exit with the verdict's code.

    advice  what to do next, which ends the line of a verdict that more calls could change
    """
    if reporting.as_json:
        print_findings(findings)
    else:
        for finding in findings:
            print_finding(finding)
    code, line = verdict(findings)
    end(findings, code, f"{line}; {advice}" if advice and code != VIOLATED else line, reporting)


def finish_grouped(findings: "Sequence[Finding]", reporting: Reporting) -> NoReturn:
    """The same of a suite: what is violated first, a sentence each; then what is not tested; the rest is counted.

    A claim that is not tested is no success: it exits 3, unless that is allowed.
    """
    by_verdict = {v: [f for f in findings if f.verdict == v] for v in ("violated", "not tested", "consistent")}
    if reporting.as_json:
        print_findings(findings)
    else:
        for finding in by_verdict["violated"]:
            print_finding(finding)
        for finding in by_verdict["not tested"]:
            typer.echo(f"{coloured('not tested')} {finding.id}: {finding.reason}")
        typer.echo(f"{coloured('consistent')} {len(by_verdict['consistent'])} claims")
        for line in excluded(by_verdict["consistent"]):
            typer.echo(f"            {line}")
        for finding in by_verdict["consistent"]:
            if finding.tables:  # what became of every parameter
                for line in told_rows(finding):
                    typer.echo(f"            {line}")
    code, line = verdict(findings)
    if code == CONSISTENT and by_verdict["not tested"] and not reporting.allow_untested:
        code, line = NOT_TESTED, line.replace("VERDICT consistent", "VERDICT not-tested")
    end(findings, code, line, reporting)


def excluded(findings: "Sequence[Finding]") -> list[str]:
    """What claims that hold would have shown: those that say the same but for a number have one line, from the least
    number to the greatest."""
    found: dict[tuple[str, str], list[str]] = {}
    for note in (finding.notes[0] for finding in findings if finding.notes and not finding.tables):
        before, *rest = re.split(r"(\d+(?:\.\d+)?)", note, maxsplit=1)
        if rest and " would " in note:
            found.setdefault((before, rest[1]), []).append(rest[0])
    lines = []
    for (before, after), numbers in sorted(found.items(), key=lambda one: -len(one[1])):
        ends = dict.fromkeys((min(numbers, key=float), max(numbers, key=float)))
        lines.append(f"{len(numbers)}: {before}{' to '.join(ends)}{after}")
    return lines


def told_rows(finding: "Finding") -> list[str]:
    """The tables of a finding a line a row, then its notes."""
    rows = [" : ".join(map(str, row)) for table in finding.tables.values() for row in zip(*table.values(), strict=True)]
    return [*rows, *finding.notes]


def end(findings: "Sequence[Finding]", code: int, line: str, reporting: Reporting) -> NoReturn:
    """The verdict is said even where a file cannot be written; beside JSON, on standard error."""
    line = one_line(line)
    typer.echo(line, err=reporting.as_json)
    try:
        reporting.write(findings, line)
    except OSError as error:
        raise BadInput(f"the verdict could not be written: {error.filename}: {error.strerror}") from None
    raise typer.Exit(code)


def print_findings(findings: "Sequence[Finding]") -> None:
    import msgspec

    print_json(msgspec.to_builtins(list(findings)))


def verdict(findings: "Sequence[Finding]") -> tuple[int, str]:
    """The exit code and the last line of an audit: the worst finding decides, nothing tested is not consistent, and
    what was not tested is said."""
    by_verdict = {v: [f for f in findings if f.verdict == v] for v in ("violated", "consistent", "not tested")}
    counts = ", ".join(f"{len(found)} {name}" for name, found in by_verdict.items() if found) or "no claim"
    if violated := by_verdict["violated"]:
        worst = _together([_said(finding) for finding in violated]) or violated[0].claim
        return VIOLATED, f"VERDICT violated ({counts}): {worst}"
    reason = by_verdict["not tested"][0].reason if by_verdict["not tested"] else "nothing was run"
    if held := by_verdict["consistent"]:
        depth = f": {held[0].method}" if len(findings) == 1 else ""
        beside = f"; not tested: {reason}" if by_verdict["not tested"] else ""
        return CONSISTENT, f"VERDICT consistent ({counts}){depth}{beside}"
    return NOT_TESTED, f"VERDICT not-tested ({counts}): {reason}"


def _said(finding: "Finding") -> str:
    """A violation in a few words."""
    witness = finding.witness or {}
    return f"contract broken: {witness['what']}" if "call made" in witness else finding.diagnosis


def _together(diagnoses: Sequence[str]) -> str:
    """One diagnosis in full; of several that differ, the classes that they name, and the others in few words."""
    from refengine.bugs.catalogue.classes import glossary

    different = [said for said in dict.fromkeys(diagnoses) if said]
    if len(different) == 1:
        return different[0]
    explained = glossary(different)
    classes = sorted({found.name for said in different for found in explained.get(said, [])})
    others = in_few_words([said for said in different if not explained.get(said)])
    return "; ".join([", ".join(classes), *others] if classes else others)


def one_line(text: str) -> str:
    """With line breaks and control characters, which a file's name may have, as Python writes them."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def coloured(verdict: str) -> str:
    """A verdict in its colour, as wide as the widest; plain where NO_COLOR asks for it (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return f"{verdict:<11}"
    colour = {"consistent": typer.colors.GREEN, "violated": typer.colors.RED}.get(verdict, typer.colors.YELLOW)
    return typer.style(f"{verdict:<11}", fg=colour, bold=True)


def print_finding(finding: "Finding") -> None:
    """One finding for a person reading a terminal."""
    from refengine.commands.told import told

    typer.echo("\n".join([f"{coloured(finding.verdict)} {finding.id}", *told(finding)]))


def print_json(rows: Sequence[dict[str, Any]]) -> None:
    typer.echo(json.dumps(rows, indent=2))


def print_rows(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """A list of flat records, as JSON or as a table that fits the terminal."""
    if as_json:
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    for number, column in enumerate(rows[0] if rows else ()):
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 160, markup=False, emoji=False).print(table)
