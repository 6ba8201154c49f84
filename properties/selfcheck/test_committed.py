"""Committed results: what makes one stale and what does not, and what a report makes of those that are fresh."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from properties.helpers import report_example as example
from refengine.report.canonical import plain
from refengine.report.finding import Finding
from refengine.report.step import Step
from refengine.selfcheck import recorded
from refengine.selfcheck.recorded import AGAIN, ON_RECORD, OTHERWISE, RECORD, STALE, sample, settle, summary
from refengine.selfcheck.records import KNOWN_STALE, RECORDS
from refengine.source_edits import committed
from refengine.source_edits.committed import Committed, file_digest, module_digest

IMPORT = "from refengine.exact.row import residual as r\n"
ADDS = f'"""A module."""\n{IMPORT}\n\ndef f(x):\n    """Adds."""\n    return x + 1\n'
LISTING = "refengine.engine.rules"


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        (f'"""Said anew."""\n{IMPORT}\n\ndef f(x):  # so\n    return x + 1\n', False),
        (ADDS.replace("+ 1", "- 1"), True),
        (ADDS.replace("residual as r", "positive as r"), True),
        (ADDS.replace("refengine.exact.row", "refengine.exact.law"), True),
        (ADDS.replace("return", 's = """# no comment"""\n    return'), True),
    ],
)
def test_code_counts_and_comments_do_not(text: str, differs: bool, tmp_path: Path) -> None:
    """Kills a result that an edit of the code leaves current, and one that a comment makes stale."""
    seen = []
    for name, version in (("a.py", ADDS), ("b.py", text)):
        (tmp_path / name).write_text(version)
        seen.append(file_digest(tmp_path / name))
    assert (seen[0] != seen[1]) == differs


def test_a_digest_sees_what_the_code_imports_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a digest of one file, which misses a rotation gone wrong, and one of everything, which is always stale."""

    def changed(module: str, of: str) -> bool:
        before = module_digest(of)
        file_digest.cache_clear()
        real = committed.own_code
        monkeypatch.setattr(
            committed,
            "own_code",
            lambda file: ("changed", ()) if file == committed.file_of(module) else real(file),
        )
        after = module_digest(of)
        monkeypatch.undo()
        file_digest.cache_clear()
        return before != after

    drafter = "refengine.decoder.drafters.dspark"
    for below in ("networks.block_backbone", "networks.rope", "networks.layers", "drafters.dspark"):
        assert changed(f"refengine.decoder.{below}", drafter)
    assert not changed("refengine.decoder.drafters.medusa", drafter)


@pytest.mark.parametrize(
    ("names", "without", "counts"),
    [
        (("RULES",), (), True),
        (("RULES",), (LISTING,), False),
        (("typical",), (LISTING,), True),
        (("RULES", "typical"), (LISTING,), True),
        (("typical",), (f"{LISTING}.",), False),
    ],
)
def test_a_listing_that_counts_otherwise_does_not_bring_what_it_lists(
    names: tuple[str, ...], without: tuple[str, ...], counts: bool, tmp_path: Path
) -> None:
    """Kills a record of every drafter that a new rule makes stale, and one that a rule imported by name does not."""
    file = tmp_path / "a.py"
    file.write_text("".join(f"from {LISTING} import {name}\n" for name in names))
    assert (f"{LISTING}.typical" in committed.imports_of(file, without)) == counts


def test_an_entry_is_fresh_missing_or_stale(tmp_path: Path) -> None:
    """Kills a stale entry that counts, a reason without the command, and a file that keeps what is no more."""
    now = {"a": "1", "b": "1"}
    record = Committed(tmp_path / "r.json", now.__getitem__, "make it", lambda: ("a", "b"))
    assert record.stale("a") == "a has no committed result (run: make it)"
    record.put("b", {"value": 2})
    record.put("a", {"value": 1})
    assert record.every_stale() == []
    assert record.fresh("a") == {"value": 1, "digest": "1"}
    assert list(record.entries()) == ["a", "b"]
    now["a"] = "2"
    assert record.fresh("a") is None
    assert record.stale("a") == "a has changed since its result was committed (run: make it)"
    assert record.every_stale() == ["a"]
    replace(record, keys=lambda: ("b",)).put("b", {})
    assert list(record.entries()) == ["b"]


# --- findings on record ----------------------------------------------------------------------------------------------


def again(changes: dict[str, object]) -> list[Finding]:
    """A finding of our own, changed."""
    first = example.references()[0]
    return [Finding(**{**{name: getattr(first, name) for name in first.__struct_fields__}, **changes})]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[list[Finding], str]]:
    """settle() of a step on record: with the digest and the findings of now, in the sample or not."""

    def call(digest: str, changes: dict[str, object], chosen: bool) -> tuple[list[Finding], str]:
        one = Step("one", partial(again, changes), digest=lambda: digest)
        monkeypatch.setattr(recorded, "_steps", lambda: {"one": one})
        monkeypatch.setattr(recorded, "RECORD", replace(RECORD, file=tmp_path / "f.json", digest=lambda name: digest))
        (tmp_path / "f.json").write_text("{}")
        replace(recorded.RECORD, digest=lambda name: "then", keys=lambda: ["one"]).put(
            "one", {"findings": plain(again({})), "made with": recorded.versions()}
        )
        return settle(one, frozenset({"one"} if chosen else ()))

    return call


def test_what_is_shown_of_a_record(settled: Callable[..., tuple[list[Finding], str]]) -> None:
    """Kills a stale finding that is shown, a sample that is not run, and a difference that nobody is told of."""
    other = {"claim": "another"}
    assert settled("then", other, False) == (again({}), ON_RECORD)
    assert settled("now", other, False) == (again(other), STALE)
    assert settled("then", {}, True) == (again({}), AGAIN)
    findings, how = settled("then", other, True)
    assert findings == again(other)
    assert how.startswith(f"{OTHERWISE}: ")
    assert "claim: was" in how


def test_a_record_that_does_not_come_out_again_is_violated() -> None:
    """Kills a summary that is consistent whatever the sample says."""
    good = summary({"a": ON_RECORD, "b": AGAIN, "c": STALE}, ["b"])
    assert good.verdict == "consistent"
    assert [good.numbers[kind] for kind in (ON_RECORD, STALE, AGAIN, OTHERWISE)] == [1, 1, 1, 0]
    bad = summary({"a": ON_RECORD, "b": f"{OTHERWISE}: x"}, ["b"])
    assert bad.verdict == "violated"
    assert bad.witness == {"b": f"{OTHERWISE}: x"}


def test_the_sample_is_drawn_by_the_commit() -> None:
    """Kills a sample that is the same in every commit, and one that differs from run to run."""
    assert sample("a") == sample("a") != sample("b")
    assert len(sample("no commit")) == recorded.SAMPLE


@pytest.mark.parametrize("name", [name for name in RECORDS if name != "tests"])  # of those every case runs then
def test_no_record_is_stale(name: str) -> None:
    """Kills a committed result that is older than what it was computed from: `make records` makes it again. One that is
    listed as stale must be: the list does not outlive its reasons."""
    record, _ = RECORDS[name]
    stale = record.every_stale()
    assert bool(stale) == (name in KNOWN_STALE), f"stale: {name}, {len(stale)} entries (run: {record.command})"
