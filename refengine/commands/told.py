"""A finding for a person: a violation as a letter, everything else as its claim. For terminals and test reports."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refengine.report.finding import Finding

WIDEST = 160  # characters of one entry of a witness on a terminal; --json has the whole
MAX_ROWS = 4  # of p or q on a terminal
INDENT = " " * 12  # below a verdict
# Entries of a function's witness: those that name its input, and those that its sentence and its table say.
INPUT = {"case", "gamma", "lanes", "vocabulary", "contexts", "seed", "start", "calls"}
TOLD = {"law", "null", "came", "due", "site", "what", "emitted", "position", "lane"}
TOLD |= {"group", "cells that come too often"}
WORDS = ("draft", "lane", "id")


def told(finding: "Finding") -> list[str]:
    """The lines below the verdict: what is wrong and where to look; then the numbers; then the witness."""
    from refengine.report.letter import sentence

    witness, said = finding.witness or {}, sentence(finding)
    lines = _paragraph(said or finding.claim)
    if "call made" in witness:  # what was wanted explains it, and no class of defects does
        return lines + _entry("expected", witness["expected"]) + _entry("call made", witness["call made"])
    lines += [*_explained(finding), *[""] * bool(said)]
    facts = [("claim", finding.claim if said else ""), ("method", finding.method), ("reason", finding.reason)]
    lines += [line for name, value in [*facts, ("size", _size(finding))] if value for line in _entry(name, value)]
    lines += witness_lines(finding)
    return lines + [line for note in finding.notes for line in _entry("note", note)]


def _explained(finding: "Finding") -> list[str]:
    """What would explain it, what that class is and where it was reported, and where to look."""
    from refengine.bugs.catalogue.classes import glossary
    from refengine.evidence.naming import NO_CLASS
    from refengine.report.letter import where_to_look

    if not finding.diagnosis:
        return []
    named = glossary([finding.diagnosis]).get(finding.diagnosis, [])
    if finding.diagnosis.startswith(NO_CLASS) or not named:
        lines = _paragraph(finding.diagnosis[0].upper() + finding.diagnosis[1:].rstrip(".") + ".")
    else:
        lines = _paragraph(f"It looks like {finding.diagnosis}.")
    if look := where_to_look(found.name for found in named):
        lines += _paragraph(f"Look at {look}.")
    about = (
        f"{found.name}: {title} ({source})"
        for found in named
        for title, source in zip(found.titles, found.sources, strict=True)
    )
    return lines + [line for entry in about for line in _entry("class", entry)]


def _size(finding: "Finding") -> str:
    if finding.magnitude is None:
        return ""
    size = finding.magnitude
    mask = ", and a token of probability zero can be emitted" if size.breaks_mask else ""
    return f"total variation {'' if size.exact else '>= '}{size.tv.value:.3g}{mask}"


def witness_lines(finding: "Finding") -> list[str]:
    """The row at which it shows as a table, then what else one needs to see it again."""
    from refengine.report.letter import site, table

    if not finding.witness:
        return []
    shown, held = site(finding), dict(finding.witness)
    lines = table(shown) if shown else []
    if held.keys() >= INPUT:
        counts = [(held[name], word) for name, word in zip(("gamma", "lanes", "vocabulary"), WORDS, strict=True)]
        size = [f"{count} {word}{'s' * (count != 1)}" for count, word in counts]
        lines.append(f"input {held['case']!r} ({', '.join(size)}), seed {held['seed']}")
        held = {name: value for name, value in held.items() if name not in INPUT | TOLD}
    lines += [line[:WIDEST] for name, value in held.items() for line in _value(name, value)]
    first, *rest = lines
    return [f"{INDENT}{'witness':<9} {first}", *(f"{INDENT}{'':<9} {line}" for line in rest)]


def _value(key: str, value: Any) -> Iterator[str]:
    """An entry of a witness; a list of rows a row a line."""
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        yield from (f"{key}[{i}] = {json.dumps(row)}" for i, row in enumerate(value[:MAX_ROWS]))
        if len(value) > MAX_ROWS:
            yield f"{key} has {len(value) - MAX_ROWS} more rows, which --json shows"
    else:
        yield f"{key} = {value if isinstance(value, str) else json.dumps(value, default=str)}"


def _entry(name: str, value: str) -> list[str]:
    first, *rest = _wrapped(value, 10)
    return [f"{INDENT}{name:<9} {first}", *(f"{INDENT}{'':<9} {line}" for line in rest)]


def _paragraph(text: str) -> list[str]:
    return [INDENT + line for line in _wrapped(text, 0)]


def _wrapped(text: str, further: int) -> list[str]:
    width = max(60, min(shutil.get_terminal_size((120, 0)).columns, 120) - len(INDENT) - further)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def save(findings: "Sequence[Finding]", out: Path) -> None:
    """A report of these findings; the seed is that of the first."""
    from refengine.bugs.catalogue.classes import glossary
    from refengine.report.report import make_report, save_report

    seed = findings[0].recipe.arguments.get("seed", 0) if findings else 0
    save_report(make_report(findings, seed=seed, defects=glossary(f.diagnosis for f in findings)), out)


def markdown(findings: "Sequence[Finding]", line: str) -> str:
    """The summary of a CI job: the verdict, the letter of each violation, what was not tested; the rest is counted."""
    parts = [f"### refengine: {line.removeprefix('VERDICT ')}"]
    for finding in findings:
        if finding.verdict == "violated":
            letter = "\n".join(textwrap.dedent("\n".join(told(finding))).splitlines())
            parts.append(f"**violated** `{finding.id}`\n\n```text\n{letter}\n```")
    parts += [f"**not tested** `{f.id}`: {f.reason}" for f in findings if f.verdict == "not tested"]
    held = sum(f.verdict == "consistent" for f in findings)
    return "\n\n".join([*parts, f"{held} of {len(findings)} claims are consistent."]) + "\n"
