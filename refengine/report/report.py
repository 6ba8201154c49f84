"""Report: findings and what they were made with. Two runs of one configuration write the same bytes."""

import importlib.metadata
import itertools
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

import refengine
from refengine.errors import BadInput
from refengine.files import read_text, write_atomic
from refengine.report.canonical import canonical, parse
from refengine.report.finding import DefectClass, Finding, Role, Verdict

SCHEMA = 2  # 2: no alpha of its own, which no finding was divided by; what the diagnoses name
PACKAGES = ("msgspec", "numpy", "safetensors", "scipy", "torch", "transformers")


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole report.

    schema       version of this layout
    engine       version of refengine that made it
    environment  versions only: python and the packages that results may depend on; no host, path or time
    seed         of every random decision
    findings     sorted by id, each id once; a statistical one says the alpha that it was made at
    defects      diagnosis -> the classes of defects that it names
    """

    schema: int
    engine: str
    environment: dict[str, str]
    seed: int
    findings: list[Finding]
    defects: dict[str, list[DefectClass]] = {}

    def __post_init__(self) -> None:
        ids = [finding.id for finding in self.findings]
        for before, after in itertools.pairwise(ids):
            if before == after:
                raise ValueError(f"two findings have the id {after!r}")
            if before > after:
                raise ValueError(f"findings are not sorted by id: {after!r} comes after {before!r}")

    def beginning_with(self, beginning: str) -> list[Finding]:
        """The findings whose ids begin so; where there is none, BadInput names those that hold it elsewhere."""
        if not (found := [finding for finding in self.findings if finding.id.startswith(beginning)]):
            near = [finding.id for finding in self.findings if beginning in finding.id][:3]
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise BadInput(f"the report has no finding that begins {beginning!r}{hint}")
        return found


def make_report(
    findings: Iterable[Finding], *, seed: int, defects: Mapping[str, list[DefectClass]] | None = None
) -> Report:
    """A report of these findings, made here and now. Raises ValueError for an id that occurs twice."""
    return Report(
        schema=SCHEMA,
        engine=refengine.__version__,
        environment=environment(),
        seed=seed,
        findings=sorted(findings, key=lambda finding: finding.id),
        defects=dict(defects or {}),
    )


# What no cell of a role may come out as.
ALARMING: dict[Role, tuple[Verdict, ...]] = {
    "reference": ("violated",),
    "control": ("consistent", "not tested"),
    "subject": (),
}


def unexpected(report: Report) -> list[Finding]:
    """What casts doubt on the referee itself: a violated reference cell, or a negative control that was not caught."""
    return [finding for finding in report.findings if finding.verdict in ALARMING[finding.role]]


def environment() -> dict[str, str]:
    """Versions of python and of the packages that results may depend on; nothing about the machine."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


def environment_differences(report: Report) -> list[str]:
    """One line per version that differs here from the report's."""
    here = {"refengine": refengine.__version__, **environment()}
    there = {"refengine": report.engine, **report.environment}
    return [
        f"{name}: report {there.get(name, 'absent')}, here {here.get(name, 'absent')}"
        for name in sorted(here.keys() | there.keys())
        if here.get(name, "absent") != there.get(name, "absent")
    ]


def save_report(report: Report, path: Path) -> None:
    """Write the canonical report.json, atomically."""
    write_atomic(path, canonical(report))


def load_report(path: Path) -> Report:
    """Read a report strictly. Every bad input raises BadInput with one line that names what is wrong."""
    return parse_report(read_text(path), name=str(path))


def parse_report(text: str, *, name: str = "the report") -> Report:
    """`load_report` for a text; `name` is what error messages call it."""
    document = parse(text, name)
    if not isinstance(document, dict) or "schema" not in document:
        raise BadInput(f"{name} is not a refengine report: it has no schema version (audits write one with --out)")
    if document["schema"] != SCHEMA:
        raise BadInput(f"{name} has schema version {document['schema']!r}; this program reads version {SCHEMA}")
    try:
        return msgspec.convert(document, Report)
    except msgspec.ValidationError as error:
        raise BadInput(f"{name} is not a valid report: {error}") from None
