"""Violations of third parties by their cause, the gravest first."""

import msgspec

from properties.helpers import report_example as example
from refengine.report.causes import UNEXPLAINED, Cause, causes, gravity
from refengine.report.finding import DefectClass, Finding, Magnitude, Quantity, Verdict
from refengine.report.html import render
from refengine.report.report import make_report

CLASSES = {name: DefectClass(name=name, titles=[f"what {name} is"], sources=["s"]) for name in ("late stop", "slip")}


def violated(name: str, diagnosis: str = "", tv: float | None = None, mask: bool = False) -> Finding:
    size = None if tv is None else Magnitude(tv=Quantity(value=tv, tolerance=0.0), exact=True, breaks_mask=mask)
    finding = example.subjects()[0]
    return msgspec.structs.replace(finding, id=name, diagnosis=diagnosis, magnitude=size, subject=f"lib 1, {name}")


def found(*findings: Finding) -> list[Cause]:
    names = {f.diagnosis: [CLASSES[f.diagnosis.partition(":")[0]]] for f in findings if f.diagnosis in DIAGNOSES}
    return causes(make_report(findings, seed=0, defects=names))


DIAGNOSES = ("late stop: only the last token is looked at", "late stop", "slip: row 1 for row 0")


def test_one_cause_holds_all_that_its_class_explains() -> None:
    """Kills groups by the wording of a diagnosis, by subject, and a cause that leaves a finding out."""
    late, same, slip = (violated(name, said, 0.2) for name, said in zip("abc", DIAGNOSES, strict=True))
    other = violated("d", "no known class fits; it shows at position 2", 0.9, mask=True)
    got = {cause.name: [f.id for f in cause.findings] for cause in found(slip, other, same, late, violated("e"))}
    assert got == {"late stop": ["a", "b"], "slip": ["c"], UNEXPLAINED: ["d", "e"]}


def test_what_held_up_has_no_cause() -> None:
    """Kills a documented mode, consistent with a diagnosis, that is listed among the violations."""
    verdicts: tuple[Verdict, ...] = ("consistent", "not tested")
    kept = [
        msgspec.structs.replace(violated(v, DIAGNOSES[0]), verdict=v, reason="r" * (v == "not tested"))
        for v in verdicts
    ]
    assert found(*kept) == []


def test_the_gravest_stands_first() -> None:
    """Kills an order by id, 6e-9 above 0.1, a broken mask weighed as nothing, the unmeasured above the measured."""
    sizes = [(0.6, False), (0.1, False), (2e-3, True), (1e-6, True), (0.05, False), (6e-9, True), (6e-10, False)]
    grave = [violated(f"f{9 - i}", tv=tv, mask=mask) for i, (tv, mask) in enumerate(sizes)]
    grave.append(violated("f0"))
    assert sorted(grave, key=gravity) == grave  # their ids go the other way
    held = msgspec.structs.replace(grave[0], verdict="consistent", diagnosis="")
    assert gravity(held) > gravity(grave[-1])


def test_causes_stand_in_the_order_of_their_gravest() -> None:
    """Kills an order by name or by number of findings; what is unexplained is no cause, and last even where graver."""
    mild = [violated(name, DIAGNOSES[0], 1e-4) for name in ("a", "b", "c")]
    got = found(*mild, violated("d", DIAGNOSES[2], 0.3), violated("e", tv=0.9, mask=True))
    assert [cause.name for cause in got] == ["slip", "late stop", UNEXPLAINED]


def test_a_cause_says_how_large_what_and_where() -> None:
    """Kills the size of the first finding, a mask forgotten, a subject told twice, the class where more is known."""
    (cause,) = found(
        violated("a", DIAGNOSES[0], 0.2), violated("b", DIAGNOSES[0], 0.1, mask=True), violated("c", DIAGNOSES[0])
    )
    assert cause.size is not None
    assert (cause.size.tv.value, cause.size.breaks_mask) == (0.2, True)
    assert cause.subjects == ["lib 1"]
    assert cause.meaning == "only the last token is looked at"
    assert found(violated("a", DIAGNOSES[1]))[0].meaning == "what late stop is"
    assert found(violated("a"))[0].size is None


def test_the_page_lists_causes_before_their_findings() -> None:
    """Kills a list in another order than the sections, a link that misses, a violation shown twice."""
    report = example.report()
    page = render(report)
    anchors = [cause.anchor for cause in causes(report)]
    assert len(anchors) > 1
    places = [page.index(f'<a href="#{anchor}">') for anchor in anchors]
    sections = [page.index(f'<section class="group cause" id="{anchor}">') for anchor in anchors]
    assert places == sorted(places)
    assert sections == sorted(sections)
    assert places[-1] < sections[0]
    for finding in report.findings:
        assert page.count(f' id="{finding.id}"') == 1
