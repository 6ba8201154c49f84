"""What is wrong with third parties, by cause: violations that one class of defects explains stand together."""

from dataclasses import dataclass

import msgspec

from refengine.report.finding import Finding, Magnitude, Verdict
from refengine.report.letter import where_to_look
from refengine.report.report import Report

ORDER: tuple[Verdict, ...] = ("violated", "not tested", "consistent")
GRAVE = 0.1  # total variation: one token in ten is another one
GRAVE_MASK = 1e-6  # of a law that leaves its support: a server emits a forbidden token within the hour
UNEXPLAINED = "no known class of defects"


@dataclass(frozen=True)
class Cause:
    """Violations with one explanation: the classes of defects, what was observed, where to look; the gravest first."""

    name: str
    meaning: str
    look: str
    findings: list[Finding]

    @property
    def anchor(self) -> str:
        return "cause/" + "-".join(self.name.split())

    @property
    def size(self) -> Magnitude | None:
        """The largest that was measured, and whether any of them breaks a mask."""
        sizes = [finding.magnitude for finding in self.findings if finding.magnitude]
        if not sizes:
            return None
        largest = max(sizes, key=lambda size: size.tv.value)
        return msgspec.structs.replace(largest, breaks_mask=any(size.breaks_mask for size in sizes))

    @property
    def subjects(self) -> list[str]:
        """Each once, without what stands behind the first comma (its options)."""
        return list(dict.fromkeys(finding.subject.partition(",")[0] for finding in self.findings))


def causes(report: Report) -> list[Cause]:
    """The causes of all violated claims about third parties, the one with the gravest finding first."""
    found: dict[str, list[Finding]] = {}
    violated = [f for f in report.findings if f.role == "subject" and f.verdict == "violated"]
    for finding in sorted(violated, key=lambda finding: (gravity(finding), finding.id)):
        named = report.defects.get(finding.diagnosis, [])
        found.setdefault(", or ".join(defect.name for defect in named) or UNEXPLAINED, []).append(finding)
    found |= {UNEXPLAINED: found.pop(UNEXPLAINED)} if UNEXPLAINED in found else {}  # last: it is not one cause
    return [_cause(report, name, findings) for name, findings in found.items()]


def _cause(report: Report, name: str, findings: list[Finding]) -> Cause:
    gravest = findings[0].diagnosis
    defects = report.defects.get(gravest, [])
    observed = gravest.partition(": ")[2] if len(defects) == 1 else gravest * bool(defects)
    titles = "; or ".join(defect.titles[0] for defect in defects)
    meaning = observed or titles or "each is told by its claim and its witness"
    return Cause(name, meaning, where_to_look(defect.name for defect in defects), findings)


def gravity(finding: Finding) -> tuple[int, bool, float]:
    """Sorts the gravest first.

    Violated ones, and of these what moves the law by GRAVE or breaks a mask that often, then by how far the law moves;
    what has no size comes last.
    """
    size = finding.magnitude
    tv = size.tv.value if size else 0.0
    grave = size is not None and tv >= (GRAVE_MASK if size.breaks_mask else GRAVE)
    return ORDER.index(finding.verdict), not grave, -tv
