"""report.html in a browser: nothing on the console, links, filter and keyboard work, and axe has nothing to say."""

import re
from collections import Counter
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest

from properties.helpers import report_example as example
from properties.helpers.browser import asked, needed, opened
from refengine.report.changes import changes
from refengine.report.html import render

pytestmark = needed
DARK = "--blink-settings=preferredColorScheme=0"
WIDE, PHONE = "--window-size=1280,1000", "--window-size=390,844"


@pytest.fixture(scope="module")
def page() -> str:
    return render(example.report(), changes(example.report(), example.report(), "old.json"))


def test_the_console_stays_empty(page: str, tmp_path: Path) -> None:
    """Kills an error in the script, and a content policy that refuses the page's own style or script."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    assert opened(file)[1] == []
    file.write_text(page.replace('"use strict";', '"use strict"; ', 1), encoding="utf-8")
    assert "Content Security Policy" in opened(file)[1][0], "what the browser refuses would be seen"


LINKS = """
const lost = [], closed = [];
for (const link of document.querySelectorAll("a[href]")) {
  const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (!target) { lost.push(link.hash); continue; }
  location.hash = link.hash;
  await new Promise((done) => setTimeout(done, 20));
  if (target.matches("details") && !target.open || !target.checkVisibility()) closed.push(link.hash);
}
return { links: document.links.length, lost, closed };
"""


def test_every_link_leads_to_something_that_is_seen(page: str, tmp_path: Path) -> None:
    """Kills a link into nothing, one to a finding that stays closed, and one that a filter keeps out of sight."""
    found = asked(page, LINKS, tmp_path)
    assert found.pop("links") > 20
    assert found == {"lost": [], "closed": []}
    filtered = "const box = document.getElementById('filter'); box.value = 'zero';"
    filtered += "box.dispatchEvent(new Event('input'));"
    assert asked(page, filtered + LINKS.replace('"a[href]"', '".matrix a"'), tmp_path)["closed"] == []


FILTER = """
const shown = () => [...document.querySelectorAll("details.finding")].filter((it) => it.checkVisibility());
const state = () => ({
  verdicts: shown().map((it) => it.dataset.verdict), ids: shown().map((it) => it.id), hash: location.hash,
  said: document.getElementById("shown").textContent,
  causes: [...document.querySelectorAll(".causes li")].filter((it) => it.checkVisibility()).length,
  headings: [...document.querySelectorAll("main .role h2, main .role h3")].filter((it) => it.checkVisibility()).length,
});
const chip = (name) => document.querySelector(`.chip[value="${name}"]`);
const box = document.getElementById("filter");
const type = (text) => { box.value = text; box.dispatchEvent(new Event("input")); };
const found = { all: state() };
dispatchEvent(new KeyboardEvent("keydown", { key: "/" }));
found.focus = document.activeElement.id;
found.first = document.querySelector("a, button, input, summary").hash;
chip("violated").click(); found.violated = state();
type("BOUNDARY 5901"); found.both = state();
type("nothing has these words"); found.none = state();
document.getElementById("unfold").click(); found.unfolded = document.querySelectorAll("details.finding[open]").length;
type(""); document.getElementById("unfold").click(); document.getElementById("unfold").click();
found.open = document.querySelectorAll("details.finding[open]").length;
chip("violated").click(); found.again = state();
location.hash = found.both.hash;
await new Promise((done) => setTimeout(done, 50));
found.recalled = state(); found.pressed = chip("violated").getAttribute("aria-pressed"); found.text = box.value;
return found;
"""


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_chips_search_and_keyboard(page: str, tmp_path: Path, size: str) -> None:
    """Kills a search that sees summaries only or one word, headings of emptied sections, a filter that a link loses."""
    found = asked(page, FILTER, tmp_path, size)
    total, counts = len(example.findings()), Counter(finding.verdict for finding in example.findings())
    assert len(found["all"]["ids"]) == total
    assert found["first"] == "#findings"
    assert found["focus"] == "filter"
    assert set(found["violated"]["verdicts"]) == {"violated"}
    assert found["violated"]["said"] == f"{counts['violated']} of {total}"
    assert found["both"]["ids"] == ["audit.kernel.hf/zero-at-zero"], "the words stand in its numbers, not in its line"
    assert found["both"]["said"] == f"1 of {total}"
    assert found["both"]["causes"] == 1
    assert found["both"]["headings"] == 2
    assert (found["none"]["said"], found["none"]["ids"], found["none"]["headings"]) == ("no match", [], 0)
    assert found["unfolded"] == 0
    assert found["open"] == counts["violated"]
    assert (found["again"]["said"], found["again"]["hash"]) == ("", "")
    assert found["recalled"] == found["both"]
    assert (found["pressed"], found["text"]) == ("true", "BOUNDARY 5901")


AXE = """
document.querySelectorAll("details").forEach((it) => { it.open = true; });
const { violations, passes } = await axe.run();
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
return { dark,
  violations: violations.map((it) => [it.id, it.help, it.nodes[0].html]), passes: passes.map((it) => it.id) };
"""


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="not tested: axe-core-python (extra `dev`) is absent")
@pytest.mark.parametrize("options", [(WIDE,), (WIDE, DARK), (PHONE,)])
def test_axe_has_nothing_to_say(page: str, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Kills pale text, controls and tables without names, headings that skip, parts that no keyboard reaches."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    found = asked(page, AXE, tmp_path, *options, library=axe)
    assert found["violations"] == []
    assert found["dark"] == (DARK in options)
    assert {"color-contrast", "heading-order", "label", "region", "duplicate-id"} <= {*found["passes"]}
    pale = page.replace("<h1>", '<h1 style="color: #ddd">').replace("<h2>", "<h5>").replace("</h2>", "</h5>")
    if options == (WIDE,):  # these rules would speak
        wrong = {rule for rule, _, _ in asked(pale, AXE, tmp_path, *options, library=axe)["violations"]}
        assert wrong == {"color-contrast", "heading-order"}


WIDTHS = """
const page = document.documentElement;
const tables = [...document.querySelectorAll(".scroll")].filter((it) => it.checkVisibility());
const wide = tables.filter((it) => it.scrollWidth > it.clientWidth);
return { page: page.scrollWidth - page.clientWidth, tables: wide.map((it) => it.ariaLabel),
  killedBy: document.querySelector("#kill-matrix thead th:nth-child(2)").textContent };
"""


def test_nothing_is_wider_than_the_page(page: str, tmp_path: Path) -> None:
    """Kills a matrix that hides its columns on a screen, and a page that scrolls sideways on a phone."""
    assert asked(page, WIDTHS, tmp_path, WIDE) == {"page": 0, "tables": [], "killedBy": "killed by"}
    assert asked(page, WIDTHS, tmp_path, PHONE)["page"] == 0


PRINT = """
dispatchEvent(new Event("beforeprint"));
const open = [...document.querySelectorAll("details.finding[open]")].map((it) => it.id);
dispatchEvent(new Event("afterprint"));
return { open, after: document.querySelectorAll("details.finding[open]").length };
"""


def test_on_paper_what_is_not_as_hoped_is_open(page: str, tmp_path: Path) -> None:
    """Kills a print without the witnesses, and one that leaves the page opened behind it."""
    wanted = [f.id for f in example.subjects() if f.verdict != "consistent"]
    found = asked(page, PRINT, tmp_path)
    assert sorted(found["open"]) == sorted(wanted)
    assert found["after"] == 0
    assert re.search(r"@media print \{.*?\.summary,[^{}]*\{ display: none", page, re.DOTALL), "no navigation on paper"
