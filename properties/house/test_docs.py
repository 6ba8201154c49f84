"""What documents and packages say of the source is so."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from refengine.evidence.alpha import ALPHA
from refengine.source_tree import PACKAGE, ROOT

ROOMS = sorted(file.parent for file in PACKAGE.rglob("__init__.py"))
LISTING = re.compile(r"\b[Oo]ne (file|folder)\b")  # what a package says whose files are of one kind: it names none
FILE = re.compile(r"`([\w/]+\.py|\w+/)`")

SOURCES = ("refengine", "properties", "proofs", "statistical_tests", "fixtures", "benchmarks", "docs", "examples")
NAMED = re.compile(r"`((?:[\w.]+/)*\w+\.py)(?:::\w+)?`|`(refengine(?:\.\w+)+)(?::\w+)?`")
ELSEWHERE = {"models/eagle3/attention.py", "models/peagle/attention.py", "pytest.py", "audit/adapters/NAME/worker.py"}
HISTORY = re.compile(r"CHANGELOG|docs/findings|CLAIMS")  # what was so when it was written

LISTED = re.compile(r"^\| `([\w/]+\.py)` \| (\d+) \|", re.MULTILINE)


def test_the_walk_through_the_decoder_has_every_file_and_its_length() -> None:
    """Kills a walk that leaves out what must be trusted, names what is gone, or promises fewer lines than there are."""
    text, rooms = (ROOT / "docs" / "decoder.md").read_text(), PACKAGE / "decoder"
    listed = {file: int(lines) for file, lines in LISTED.findall(text)}
    files = [file for file in rooms.rglob("*.py") if file.name != "__init__.py" and file.parent.name != "layouts"]
    lines = {file.relative_to(rooms).as_posix(): len(file.read_text().splitlines()) for file in files}
    assert listed.keys() == lines.keys(), "each file of decoder/ has a row in docs/decoder.md, with its lines"
    assert [name for name in lines if abs(listed[name] - lines[name]) > max(5, lines[name] // 10)] == []
    (said,) = (int(number.replace(",", "")) for number in re.findall(r"below are ([\d,]+), comments", text))
    assert abs(said - sum(lines.values())) <= sum(lines.values()) // 10


def test_the_false_alarm_rate_stands_in_one_page() -> None:
    """Kills a page that goes on with the old rate when alpha is changed."""
    pages = {page.name: page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}
    said = {name: float(rate) for name, text in pages.items() for rate in re.findall(r"alpha\b[^.\n]*?(1e-\d+)", text)}
    assert said == {"glossary.md": ALPHA}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_package_says_what_is_in_it(room: Path) -> None:
    """Kills a file that a reader of its package is not sent to, and a name in a package's text that is gone."""
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    held = {file.stem for file in room.glob("*.py")} | {file.parent.name for file in room.glob("*/__init__.py")}
    unnamed = held - {"__init__", "__main__"} - set(re.findall(r"\w+", said))
    assert not unnamed or LISTING.search(said), sorted(unnamed)
    gone = [name for name in FILE.findall(said) if not any((at / name).exists() for at in (room, room.parent, PACKAGE))]
    assert [name for name in gone if name != "worker.py"] == [], "worker.py is in each adapter's own folder"


def test_a_file_that_a_text_names_is_there() -> None:
    """Kills a document or a docstring that sends its reader to a file, a module or a name that has moved."""
    sources = [*ROOT.glob("*.py"), *(file for room in SOURCES for file in (ROOT / room).rglob("*.py"))]
    held = [f"/{file.relative_to(ROOT).as_posix()}" for file in sources]
    gone = {
        (name, where)
        for where, text in texts(sources)
        for name, dotted in NAMED.findall(text)
        if (not is_there(dotted) if dotted else not any(file.endswith(f"/{name}") for file in held))
    }
    assert {one for one in gone if one[0] not in ELSEWHERE} == set()


def texts(sources: list[Path]) -> Iterator[tuple[str, str]]:
    """The documents, and the docstrings of every module."""
    for page in [*ROOT.glob("*.md"), *(file for room in SOURCES for file in (ROOT / room).rglob("*.md"))]:
        if not HISTORY.search(page.as_posix()):
            yield page.name, page.read_text()
    for source in sources:
        nodes = ast.walk(ast.parse(source.read_text()))
        kinds = (ast.Module, ast.FunctionDef, ast.ClassDef)
        yield source.name, "\n".join(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))


def is_there(dotted: str) -> bool:
    """A module of ours, or a word that stands in one."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        for file in (ROOT.joinpath(*parts[:n]).with_suffix(".py"), ROOT.joinpath(*parts[:n], "__init__.py")):
            if file.is_file():
                return n == len(parts) or re.search(rf"\b{parts[n]}\b", file.read_text()) is not None
    return False
