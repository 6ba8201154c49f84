"""report.html: self-contained, deterministic, and safe with strings that nobody vetted."""

import base64
import hashlib
import html
import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.helpers import report_example as example
from refengine.report import plots
from refengine.report.canonical import canonical
from refengine.report.changes import changes
from refengine.report.finding import DRAWN
from refengine.report.html import KINDS, command, render
from refengine.report.report import Report, make_report, parse_report
from refengine.report.tables import matrix


class Page(HTMLParser):
    """Tags with their attributes, and the text, of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page() -> str:
    return render(example.report())


def test_same_report_same_page(page: str) -> None:
    """Kills identifiers from a counter or a hash, timestamps, and a page that changes once the report is reloaded."""
    assert render(parse_report(canonical(example.report()))) == page


def test_page_refers_to_nothing_outside_itself(page: str) -> None:
    """Kills fonts, scripts and images from elsewhere."""
    for tag, attributes in Page(page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert "://" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_content_policy_admits_exactly_our_style_and_script(page: str) -> None:
    """Kills a policy whose hashes are not those of what the page holds, so that nothing or anything runs."""
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
    for tag in ("style", "script"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert not any("style" in attributes for _, attributes in Page(page).tags)  # the policy would drop them


def hostile() -> Report:
    """The example with markup in every string that a subject could influence, and in every key."""
    text = example.HOSTILE

    def spoil(value: Any, where: str) -> Any:
        if where in ("recipe", "verdict", "role", "replay", "magnitude"):
            return value
        if isinstance(value, dict):
            fixed = ("tables", "numbers", "value", "tolerance", "witness")
            keep = where in ("finding", "columns") or value.keys() == {"value", "tolerance"}
            below = "columns" if where == "tables" else where
            return {
                k if keep or where == "tables" or k in fixed else text + k: spoil(v, k if where == "finding" else below)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [spoil(item, where) for item in value]
        return text + value if isinstance(value, str) and not re.fullmatch(r"\d+(/\d+)?", value) else value

    document = json.loads(canonical(example.report()))
    document["findings"] = [spoil({**f, "id": text + f["id"]}, "finding") for f in document["findings"]]
    document["defects"] = {text + k: spoil(v, "defects") for k, v in document["defects"].items()}
    for defect in itertools.chain(*document["defects"].values()):
        for name in ("name", "titles", "sources"):
            defect[name] = defect.pop(text + name)
    for finding in document["findings"]:
        finding["id"] = finding["id"].removeprefix(text)
        finding["reason"] = finding["reason"] if finding["verdict"] == "not tested" else ""
    return parse_report(json.dumps(document))


def test_hostile_strings_stay_text(page: str) -> None:
    """Kills autoescape off, a `safe` filter or a format that skips escaping, in the page or in a plot."""
    report = hostile()
    spoiled = canonical(report).count("<script>")
    assert spoiled > 500
    tags = Page(render(report)).tags
    harmless = Page(page).tags
    assert [tag for tag, _ in tags].count("script") == 1
    assert {tag for tag, _ in tags} == {tag for tag, _ in harmless}
    assert {name for _, attributes in tags for name in attributes} == {name for _, a in harmless for name in a}
    assert example.HOSTILE in html.unescape(render(report))


def test_every_finding_says_all_it_has(page: str) -> None:
    """Kills a finding, a reason, a diagnosis, a note or a re-run command that the page drops."""
    text = " ".join(Page(page).text.split())
    for finding in example.findings():
        parts = [finding.claim, finding.method, finding.source, finding.subject, finding.reason, finding.diagnosis]
        for part in [*parts, *finding.notes, *finding.numbers, *(finding.witness or {}), command(finding)]:
            assert " ".join(part.split()) in text, (finding.id, part)


def test_lead_says_whether_the_referee_stands(page: str) -> None:
    """Kills a page that is reassuring about a report whose own cells failed."""
    assert "The referee stands" in page
    assert "in doubt" not in page
    document = json.loads(canonical(example.report()))
    next(f for f in document["findings"] if f["role"] == "control")["verdict"] = "consistent"
    doubted = render(parse_report(json.dumps(document)))
    assert "The referee itself is in doubt: 1 of its own" in " ".join(doubted.split())
    assert "The referee stands" not in doubted


def test_chips_count_what_they_filter(page: str) -> None:
    """Kills a chip with another count than the findings that it leaves, and a verdict without one."""
    tags = Page(page).tags
    verdicts = [
        attributes["data-verdict"] for tag, attributes in tags if tag == "details" and "data-verdict" in attributes
    ]
    assert len(verdicts) == len(example.findings())
    chips = re.findall(r'class="chip" value="([^"]*)" aria-pressed="false">(.*?)</button>', page, re.DOTALL)
    counted = {value: int(re.search(r"</i> (\d+)", inner)[1]) for value, inner in chips}  # type: ignore[index]
    assert counted == {verdict: verdicts.count(verdict) for verdict in ("violated", "not tested", "consistent")}


def test_links_inside_the_page_lead_somewhere(page: str) -> None:
    """Kills a skip link, a link to a matrix or a plot, or a finding's own, whose target has another name."""
    tags = Page(page).tags
    names = {attributes["id"] for _, attributes in tags if attributes.get("id")}
    links = [unquote((a["href"] or "")[1:]) for tag, a in tags if tag == "a"]
    assert links[0] == "findings", "the first thing that a keyboard reaches skips the rest"
    assert {"kill-matrix", "plots"} <= {*links}
    assert {*links} <= names


def test_the_top_says_what_was_audited_and_what_was_not(page: str) -> None:
    """Kills a page that leaves one to guess its scope."""
    top = " ".join(Page(page.partition("<nav")[0]).text.split())
    for finding in example.subjects():
        assert finding.subject.partition(",")[0] in top
        assert finding.reason[:80] in top


def test_a_violation_says_what_it_is_without_being_opened(page: str) -> None:
    """Kills a list of violations in which one must open each to learn what is wrong."""
    summaries = [html.unescape(summary) for summary in re.findall(r"<summary>(.*?)</summary>", page, re.DOTALL)]
    violated = [finding for finding in example.subjects() if finding.verdict == "violated"]
    assert violated
    for finding in violated:
        (summary,) = [summary for summary in summaries if f"<code>{finding.id}</code>" in summary]
        assert finding.diagnosis in summary


def test_what_changed_since_an_earlier_report() -> None:
    """Kills a change that is left out, one that is told the wrong way round, and a link to a finding that went."""
    new = example.report()
    document = json.loads(canonical(new))
    grew, flipped = [f for f in document["findings"] if f["role"] == "subject" and f["verdict"] == "violated"][:2]
    new_one = next(f for f in document["findings"] if f["role"] == "reference")
    by_id = {finding["id"]: finding for finding in document["findings"]}
    by_id[flipped["id"]] |= {"verdict": "consistent"}
    by_id[grew["id"]]["magnitude"]["tv"]["value"] *= 2
    del by_id[new_one["id"]]
    document["findings"] = [*by_id.values(), {**new_one, "id": "zz/went"}]
    found = changes(parse_report(json.dumps(document)), new, "old.json")
    assert [row.id for row in found.rows["Violated now"]] == [flipped["id"]]
    assert [row.id for row in found.rows["Moved"]] == [grew["id"]]
    assert [row.id for row in found.rows["Appeared"]] == [new_one["id"]]
    assert [(row.id, row.here) for row in found.rows["Went"]] == [("zz/went", False)]
    assert found.same == len(new.findings) - 3
    page = render(new, found)
    assert "Against old.json" in page
    assert 'href="#zz/went"' not in page
    assert changes(new, new, "itself").same == len(new.findings)
    assert not any(changes(new, new, "itself").rows.values())


def test_empty_report_is_a_page() -> None:
    """Kills a template that needs findings of every role."""
    assert "No third-party code was audited." in render(make_report([], seed=0))


def test_kill_matrix_counts_kills(page: str) -> None:
    """Kills cells under the wrong check, absent cells read as survived, a crash counted, a missed bug not marked."""
    found = matrix(example.report())
    assert sorted(found.checks) == sorted(example.CHECKS)
    assert sorted(row.bug for row in found.rows) == sorted(bug for bug, _ in example.BUGS)
    for row in found.rows:
        i = [bug for bug, _ in example.BUGS].index(row.bug)
        expected = [
            None if (i, check) == (9, example.CHECKS[3]) else example.outcome(i, example.CHECKS.index(check))
            for check in found.checks
        ]
        assert row.outcomes == expected
        assert row.kills == sum(outcome == "killed" for outcome in expected)
        assert row.missed == (row.bug == "bonus-dropped")
    kinds = [row.kind for row in found.rows]
    assert len([k for k, _ in itertools.groupby(kinds)]) == len(set(kinds))
    assert re.findall(r'class="survivor"><th scope="row"><a href="#([^"]*)"', page) == ["control/bonus-dropped"]


def bars(svg: str) -> list[float]:
    return [float(width) for width in re.findall(r'width="([\d.]+)" height="11"', svg)]


def test_what_a_finding_may_have_drawn_is_drawn() -> None:
    """Kills a table that `DRAWN` promises and nobody draws, and a plot whose columns are written down nowhere."""
    drawn = plots.PLOTS.keys() | {"kill matrix", "battery"}
    assert DRAWN.keys() == drawn, "write the columns of a plot in DRAWN of report/finding.py"
    assert {name for name, _, _ in KINDS} == plots.PLOTS.keys()  # the titles and captions of the gallery


def test_law_plot_shows_shares() -> None:
    """Kills counts drawn against probabilities without normalising, and mass lost among the others."""
    counts = plots.law({"outcome": [0, 1, 2], "target": ["1/2", "1/4", "1/4"], "observed": [200, 100, 100]})
    assert bars(counts)[0] == 2 * bars(counts)[1] == 2 * bars(counts)[2]
    assert "distance 0&#34;" in counts or 'distance 0"' in counts
    many = plots.law({"outcome": list(range(100)), "target": [1] * 100, "observed": [1] * 100})
    assert "84 others" in many
    widths = bars(many)
    assert len(widths) == 17
    assert widths[-1] == pytest.approx(84 * widths[0], abs=84 * 0.01)  # widths are rounded to 0.01


def test_evidence_plot_keeps_the_last_point() -> None:
    """Kills thinning that drops the point at which the verdict fell."""
    n = 1234
    svg = plots.evidence({"draws": list(range(n)), "log10_wealth": [0.0] * (n - 1) + [9.5]})
    assert "evidence after 1233 draws: 10 to the 9.5" in svg
    assert svg.count("L") < 2 * plots.EVIDENCE_POINTS


def test_a_counted_share_has_its_interval() -> None:
    """Kills dots without bars where counts are known, bars where every draw was enumerated, bars of another width."""
    columns = {"position": [1, 2], "expected": [0.5, 0.5], "observed": [0.5, 0.25]}
    axes = plots.acceptance(columns).count("<line")
    assert plots.acceptance({**columns, "count": [100, 400]}).count("<line") == axes + 2
    low, high = plots.wilson(0.0, 100)
    assert (low, high) == pytest.approx((0.0, 0.0370), abs=1e-4)  # z^2 / (n + z^2)
    assert plots.wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)


@pytest.mark.parametrize("last", [(1.0, 1.0, 1.0), (0.0, 1.0, 1.01), (2.0, 1.0, 0.0)])
def test_names_at_the_ends_of_lines_are_apart(last: tuple[float, float, float]) -> None:
    """Kills names that are printed upon each other, or below the axis, where lines end together."""
    columns = {
        "threshold": [0.0, 0.9],
        **{name: [3.0, y] for name, y in zip(("proposed", "tau", "cost"), last, strict=True)},
    }
    svg = str(plots.sweep(columns))
    feet = [float(re.search(rf'y="([\d.]+)"[^>]*>{name}', svg)[1]) for name in plots.SWEPT]
    assert all(abs(a - b) >= 11 for a, b in itertools.combinations(feet, 2))
    assert max(feet) <= plots.Frame((0, 1), (0, 1)).bottom + 4


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    """Kills axes without ticks, with hundreds, or with ticks outside the paper."""
    high = low + span
    if high == low:
        return
    found = plots.ticks(low, high)
    assert 1 <= len(found) <= 6
    slack = 1e-6 * (high - low) + 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= tick <= high + slack for tick in found)


def test_degenerate_tables_are_drawn_or_left() -> None:
    """Kills a division by zero on one position, on constant wealth, on zero mass or on no rows."""
    assert "<svg" in plots.acceptance({"position": [0], "expected": [0.5], "observed": [0.5]})
    assert "<svg" in plots.evidence({"draws": [1], "log10_wealth": [0.0]})
    assert "<svg" in plots.law({"outcome": [[]], "target": [0], "observed": [0]})
    assert plots.plot("law", {"outcome": [], "target": [], "observed": []}) is None
    assert plots.plot("anything", {"a": [1]}) is None


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_text_stands_out_from_what_it_stands_on(page: str) -> None:
    """Kills a palette, for light, dark or paper, with text below 4.5 : 1 or bars below 3 : 1 (WCAG 2.2, 1.4.3, 1.4.11).

    Beside axe, which leaves undecided what stands beside a sign that is drawn.
    """
    palettes = [dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in re.findall(r":root \{(.*?)\}", page, re.S)]
    assert len(palettes) == 3
    texts = [(name, ground) for name in ("ink", "soft", "link", "bad", "ok", "none") for ground in ("paper", "raised")]
    texts += [(name, f"{name}-wash") for name in ("ok", "bad", "none")] + [("ink", "wash"), ("soft", "none-wash")]
    texts += [("soft", "wash"), ("bad", "wash"), ("paper", "bad")]
    for palette in palettes:
        for name, ground in [*texts, ("data", "paper")]:
            dark, light = sorted((luminance(palette[name]), luminance(palette[ground])))
            contrast = (light + 0.05) / (dark + 0.05)
            assert contrast >= (3 if name == "data" else 4.5), f"{name} on {ground}: {contrast:.2f} : 1"
