"""Tests on record: what has changed runs whole, of what has not every test runs some cases, other ones every time."""

import re
from pathlib import Path

import pytest

from refengine.selfcheck import tests_on_record
from refengine.selfcheck.tests_on_record import READ, SHARE, files, reached, spared
from refengine.source_edits.committed import Committed
from refengine.source_tree import PACKAGE, ROOT

CASES = [f"properties/a.py::test_a[{number}]" for number in range(4 * SHARE)]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Committed:
    """A record of files whose digest is their name."""
    record = Committed(tmp_path / "tests.json", str, "make again")
    monkeypatch.setattr(tests_on_record, "RECORD", record)
    return record


def test_what_is_not_on_record_runs_whole(recorded: Committed) -> None:
    """Kills a sample of tests that never passed, or that passed on another text."""
    assert not spared(CASES)
    recorded.put("properties/a.py", {})
    assert not spared([case.replace("a.py", "b.py") for case in CASES])
    recorded.write({"properties/a.py": {"digest": "of another text"}})
    assert not spared(CASES)


def test_every_file_runs_some_cases(recorded: Committed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a file that no commit runs any more, a draw that never changes, and one that differs between the processes
    of one run."""
    recorded.write({name: {"digest": name} for name in ("properties/a.py", "properties/b.py")})
    alone = ["properties/b.py::test_b"]
    drawn = []
    for commit in ("1", "1", "2", "3", "4"):
        monkeypatch.setattr(tests_on_record, "commit_id", lambda commit=commit: commit)
        drawn.append(frozenset([*CASES, *alone]) - spared([*CASES, *alone]))
        assert len(drawn[-1]) == len(CASES) // SHARE + 1
        assert drawn[-1].issuperset(alone)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 2


def test_what_a_child_runs_counts_too(tmp_path: Path) -> None:
    """Kills a digest that leaves out a module that is named where another process or a listing loads it."""
    file, other = tmp_path / "test_a.py", tmp_path / "test_b.py"
    file.write_text('"""A test."""\n\nPLACE = "refengine.audit.kernel.child.signatures:handler"\n')
    assert PACKAGE / "audit/kernel/child/signatures.py" in reached(file)
    other.write_text("import refengine.engine.rules\n")
    assert PACKAGE / "engine/rules/leviathan.py" in reached(other)


@pytest.mark.parametrize("name", files())
def test_no_page_and_no_proof_is_read(name: str) -> None:
    """Kills a file on record whose tests depend on a page, a proof or a record, which no digest has."""
    read = {*map(str, READ)}
    for file in reached(ROOT / name):
        if "properties" in file.parts:
            text = file.read_text("utf-8")
            assert not {"PROOFS", "RESULTS"} & {*re.findall(r"\b[A-Z]+\b", text)}, file
            named = re.findall(r'\bROOT((?: / "[^"]*")+)', text)
            paths = [ROOT.joinpath(*re.findall(r'"([^"]*)"', words)) for words in named]
            assert [path for path in paths if not read & {str(one) for one in (path, *path.parents)}] == [], file
