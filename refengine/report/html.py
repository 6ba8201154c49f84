"""report.html: a report for people. One file that refers to nothing outside it; one report, one text."""

import base64
import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from refengine.files import write_atomic
from refengine.report.canonical import canonical, plain
from refengine.report.causes import ORDER, UNEXPLAINED, causes, gravity
from refengine.report.changes import Changes
from refengine.report.finding import Finding, Quantity, Role, Verdict
from refengine.report.letter import sentence, site, where_to_look
from refengine.report.plots import magnitude, plot, scale, short
from refengine.report.report import ALARMING, Report, parse_report, unexpected
from refengine.report.tables import BATTERY, battery, matrix

GALLERY = 6  # plots of one kind shown together; the others stand with their findings
REASONS = 6  # why claims were not tested, the commonest ones, above the findings
REASON = 110  # characters of one
TABLE_ROWS = 100  # rows of one table that are listed; report.json has them all
ROLES: tuple[tuple[Role, str, str, str], ...] = (
    ("subject", "Subjects", "Third-party subjects", "Other people's implementations, held to what they promise."),
    (
        "reference",
        "Reference",
        "Reference cells",
        "This package's own rules and loops. Each is expected to be consistent.",
    ),
    (
        "control",
        "Controls",
        "Negative controls",
        "Planted defects, and modes that are lossy by design. Each is expected to come out violated.",
    ),
)
KINDS = (
    ("law", "Law against target", "Bars are what came out, ticks are what the target demands."),
    ("evidence", "Evidence against draws", "Wealth of the bets against losslessness. A lossless subject stays low."),
    (
        "acceptance",
        "Acceptance against 1 − TV",
        "Share of drafts accepted at each position, of those that are reached (dots), beside what the rows of target "
        "and drafter demand (diamonds): in a chain that is drawn from q, 1 − TV(p, q). A dot belongs in its diamond. "
        "Where it was counted it has a bar, a 95% interval; where every draw was enumerated it has none.",
    ),
    (
        "reliability",
        "Confidence against acceptance",
        "Positions in bins of equal size by the confidence that the drafter states: the share accepted (dots, with a "
        "95% interval) and the mean of 1 − TV(p, q) (diamonds). On the diagonal the confidence is right; below, it is "
        "too high.",
    ),
    (
        "survival",
        "Survival along the block",
        "Share of rounds that accept every draft up to a position (dots, with a 95% interval), beside the mean product "
        "of the confidences up to it (diamonds). A diamond above the bar: the confidences promise too much.",
    ),
    (
        "sweep",
        "Threshold on the confidence",
        "A block ends before the first confidence below the threshold. That pays where the positions that the target "
        "computes for a token, (drafts + 1) / tokens, become fewer; its price is that a round emits fewer tokens.",
    ),
    ("calibration", "Calibration", "How much evidence correct samplers ever see. Ville's bound stays above it."),
    ("power", "Power", "Calls until a known defect is found, beside the fewest that its law allows."),
)


@dataclass(frozen=True)
class Group:
    """The findings about one subject."""

    subject: str
    findings: list[Finding]


@dataclass(frozen=True)
class Part:
    """The findings of one role by subject, those that matter first; violations of third parties go by cause."""

    role: Role
    short: str
    title: str
    meaning: str
    alarming: tuple[Verdict, ...]
    counts: dict[Verdict, int]
    groups: list[Group]


@dataclass(frozen=True)
class Scope:
    """What was audited, by subject with its number of claims; why claims were not tested, and how often."""

    audited: list[tuple[str, int]]
    left_out: list[tuple[str, int]]


def save_html(report: Report, path: Path, changes: Changes | None = None) -> None:
    """Write report.html atomically."""
    write_atomic(path, render(report, changes))


def render(report: Report, changes: Changes | None = None) -> str:
    """The page as text. Every string of a finding is escaped, and a content policy forbids scripts but our own.

    changes  since an earlier report, which the page begins with
    """
    report = parse_report(canonical(report))  # the page shows what report.json says, in its order
    environment = Environment(
        loader=PackageLoader("refengine.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(short=short, quantity=quantity, compact=compact, listed=witness_lines)
    environment.globals.update(sentence=sentence, site=site, where_to_look=where_to_look)
    environment.globals.update(plot=plot, magnitude=magnitude, scale=scale)
    environment.globals.update(zip=zip, command=command, shown=shown, limit=TABLE_ROWS)
    style, script = _asset("style.css"), _asset("page.js")
    found, drafters = matrix(report), battery(report.findings)
    gallery = [(title, text, _gallery(report, kind)) for kind, title, text in KINDS]
    plots = any(drawn for _, _, (drawn, _) in gallery)
    elsewhere = {"changes": changes, "drafters": drafters.rows, "kill-matrix": found.rows, "plots": plots}
    page = environment.get_template("page.html.j2").render(
        report=report,
        parts=[_part(report, *role) for role in ROLES],
        alarms={finding.id for finding in unexpected(report)},
        totals={verdict: sum(f.verdict == verdict for f in report.findings) for verdict in ORDER},
        scope=_scope(report),
        anchors=[(anchor, anchor.replace("-", " ")) for anchor, there in elsewhere.items() if there],
        changes=changes,
        causes=causes(report),
        unexplained=UNEXPLAINED,
        gallery=gallery,
        matrix=found,
        battery=drafters,
        records=next((finding for finding in report.findings if finding.id == "records"), None),
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'",
    )
    return page.rstrip("\n") + "\n"


def _asset(name: str) -> str:
    return files("refengine.report").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _scope(report: Report) -> Scope:
    """Of a subject what stands before its first comma, of a reason the beginning: the whole is beside each claim."""
    audited = Counter(finding.subject.partition(",")[0] for finding in report.findings if finding.role == "subject")
    reasons = Counter(
        shorten(finding.reason, REASON, placeholder=" …") for finding in report.findings if finding.reason
    )
    return Scope(sorted(audited.items()), reasons.most_common(REASONS))


def _part(report: Report, role: Role, name: str, title: str, meaning: str) -> Part:
    findings = [finding for finding in report.findings if finding.role == role]
    alarms = {finding.id for finding in unexpected(report)}
    findings.sort(key=lambda finding: (finding.id not in alarms, *gravity(finding), finding.id))
    groups: dict[str, list[Finding]] = {}
    for finding in findings:  # subjects stand in the order of their gravest finding
        if role != "subject" or finding.verdict != "violated":
            groups.setdefault(finding.subject, []).append(finding)
    counts: dict[Verdict, int] = {verdict: sum(f.verdict == verdict for f in findings) for verdict in ORDER}
    return Part(role, name, title, meaning, ALARMING[role], counts, [Group(*item) for item in groups.items()])


def _gallery(report: Report, kind: str) -> tuple[list[tuple[Finding, Markup]], int]:
    drawn = [(finding, kind) for finding in report.findings if kind in finding.tables]
    drawn.sort(key=lambda item: (item[0].role != "subject", ORDER.index(item[0].verdict), item[0].id))
    plots = [(finding, plot(kind, finding.tables[kind])) for finding, _ in drawn[:GALLERY]]
    return [(finding, svg) for finding, svg in plots if svg is not None], len(drawn)


def command(finding: Finding) -> str:
    """The one line that makes a finding again."""
    return shlex.join(["refengine", "rerun", "report.json", finding.id])


def quantity(value: Any) -> str:
    """A measured number with its tolerance."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, Quantity):
        return "none" if value is None else str(value)
    return short(value.value) if value.tolerance == 0 else f"{short(value.value)} ± {short(value.tolerance)}"


def compact(value: Any) -> str:
    """A cell on one line; a measured one without its tolerance."""
    if isinstance(value := plain(value), dict) and value.keys() == {"value", "tolerance"}:
        return short(value["value"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def witness_lines(value: Any) -> list[str]:
    """A value of a witness: a list of records one per line, anything else on one."""
    if isinstance(value, list | tuple) and value and all(isinstance(item, list | tuple | dict) for item in value):
        return [compact(item) for item in value]
    return [compact(value)]


def shown(tables: dict[str, dict[str, list[Any]]]) -> Sequence[tuple[str, Markup | None, list[str], list[Any]]]:
    """Tables of a finding in order: name, plot if there is one, column names, rows."""
    return [
        (name, plot(name, columns), list(columns), list(zip(*columns.values(), strict=True)))
        for name, columns in sorted(tables.items())
        if name != BATTERY
    ]
