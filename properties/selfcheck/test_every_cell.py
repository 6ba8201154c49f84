"""The committed results of every exact-law cell: what their digest depends on, and what is shown of them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from refengine.selfcheck.drafters import committed_cells
from refengine.selfcheck.drafters.cells import CELLS, Cell, session
from refengine.selfcheck.drafters.committed_cells import content, parts_of, shown, source
from refengine.selfcheck.drafters.table import ROWS

CELL = "ngram/point_mass/mixed"


@pytest.mark.parametrize("drafter", ROWS)
def test_a_digest_is_of_what_was_loaded_alone(drafter: str) -> None:
    """Kills a digest of addresses or of memory that nobody has written: no result would ever be current."""
    fresh = parts_of.__wrapped__
    rule = ROWS[drafter].rules[0]
    assert fresh(drafter, 0.0, rule) == fresh(drafter, 0.0, rule)


def test_a_digest_sees_a_tensor_a_setting_and_a_rule() -> None:
    """Kills a result that stays current when the drafter it was computed with has changed."""

    def seen(change: Any) -> bytes:
        play = session(Cell("dspark", "mixed"))
        change(play)
        return b"".join(content(play, set()))

    def weight(play: Any) -> None:
        play.drafter.w.tensors["fc.weight"][0, 0] += 1e-9

    def setting(play: Any) -> None:
        play.drafter.threshold = 0.1

    def target(play: Any) -> None:
        play.target.window = 3

    same, *others = (seen(change) for change in (lambda play: None, weight, setting, target))
    assert len({same, *others}) == 4
    assert seen(lambda play: None) == same
    with torch.no_grad():
        assert parts_of("dspark", 0.0, "leviathan") != parts_of("dspark", 0.0, "block")
        assert parts_of("dspark", 0.0, "leviathan") != parts_of("dspark", 0.8, "leviathan")


def test_a_digest_sees_what_the_code_imports_and_no_other_drafter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kills a digest of one file, which misses a rotation gone wrong, and one of everything, which is always stale."""
    drafter, original = "refengine.decoder.drafters.dspark", committed_cells.source_path
    before = source(drafter)
    for part, counts in (("networks.block_backbone", True), ("networks.rope", True), ("drafters.medusa", False)):
        edited = tmp_path / "edited.py"
        edited.write_text(original(f"refengine.decoder.{part}").read_text() + "\nMORE = 1\n")
        paths = {f"refengine.decoder.{part}": edited}
        monkeypatch.setattr(committed_cells, "source_path", lambda name, paths=paths: paths.get(name) or original(name))
        source.cache_clear()
        assert (source(drafter) != before) == counts, part
    source.cache_clear()


def test_a_digest_does_not_see_the_name_of_a_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills hours of cells run again because a file has moved, and a move that hides what is imported."""
    texts = {"a": "def f():\n    return 1\n", "b": "def f():\n    return 2\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / f"moved_{name}.py").write_text(text)
        (tmp_path / f"of_{name}.py").write_text(f"from refengine.{name} import f\n")
        (tmp_path / f"of_moved_{name}.py").write_text(f"from refengine.moved_{name} import f\n")
    monkeypatch.setattr(committed_cells, "source_path", lambda name: there(tmp_path / f"{name.split('.', 1)[1]}.py"))
    seen = {name: source(f"refengine.of_{name}") for name in ("a", "moved_a", "b", "moved_b")}
    assert seen["a"] == seen["moved_a"] != seen["b"] == seen["moved_b"]


def there(file: Path) -> Path:
    if not file.is_file():
        raise ValueError(file)
    return file


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        ('"""Said anew."""\n\n\ndef f(x):\n    # a comment\n    """And here."""\n    return x + 1\n', False),
        ('"""A module."""\n\n\ndef f(x):\n    """Adds."""\n    return x - 1\n', True),
    ],
)
def test_code_counts_and_comments_do_not(
    text: str, differs: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kills a result that an edit of the code leaves current, and one that a comment makes stale."""
    monkeypatch.setattr(committed_cells, "source_path", lambda module: tmp_path / "module.py")
    seen = []
    for version in ('"""A module."""\n\n\ndef f(x):\n    """Adds."""\n    return x + 1\n', text):
        (tmp_path / "module.py").write_text(version)
        seen.append(committed_cells.source.__wrapped__("refengine.module"))
    assert (seen[0] != seen[1]) == differs


def law_of(name: str, **changes: Any) -> dict[str, Any]:
    counted = dict.fromkeys(committed_cells.COUNTED, 3)
    return {"digest": committed_cells.digest("law", name), "consistent": True, "tv": 1e-16, **counted, **changes}


def planted_in(name: str, moved: float = 0.1) -> dict[str, Any]:
    return {"digest": committed_cells.digest("planted", name), "a bug": [moved, 0.0, 1.0]}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "consistent"),
        ({"digest": "another"}, "not tested"),
        ({"consistent": False}, "violated"),
        ({"consistent": False, "digest": "another"}, "not tested"),
    ],
)
def test_what_is_shown(change: dict[str, Any], verdict: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills a stale result that is shown, a missing one that is not missed, and a violated one that is hidden."""
    monkeypatch.setattr(committed_cells, "RESULT", tmp_path / "cells.json")
    cells = [name for name, cell in CELLS.items() if cell.drafter == "ngram"]
    results = {name: {"law": law_of(name), "planted": planted_in(name)} for name in cells}
    committed_cells.save(results)
    assert shown("ngram")[0].verdict == "consistent"
    results[CELL]["law"] |= change
    committed_cells.save(results)
    (finding,) = shown("ngram")
    assert finding.verdict == verdict
    assert finding.numbers["cells"] == len(cells) - (verdict == "not tested")
    del results[CELL]
    committed_cells.save(results)
    assert shown("ngram")[0].verdict == "not tested"


@pytest.mark.parametrize(("cells", "verdict"), [(1, "consistent"), (8, "violated")])
def test_a_planted_bug_that_moves_nothing_is_shown(
    cells: int, verdict: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kills a committed negative control that nobody looks at: one cell may stand a bug, not all of a drafter's."""
    monkeypatch.setattr(committed_cells, "RESULT", tmp_path / "cells.json")
    names = [name for name, cell in CELLS.items() if cell.drafter == "ngram"]
    moved = {name: 1e-9 if i < cells else 0.1 for i, name in enumerate(names)}
    committed_cells.save({name: {"law": law_of(name), "planted": planted_in(name, moved[name])} for name in names})
    (finding,) = shown("ngram")
    idle = [f"a bug in {name}: no effect on what is compared" for name in names[:cells]]
    assert (finding.verdict, finding.notes) == (
        verdict,
        ["a bug: it shows in no cell", *idle][verdict == "consistent" :],
    )
    assert finding.numbers["planted bugs that move the law"] == len(names) - cells


def test_a_run_goes_on_where_it_was_cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills a run that starts over, one that leaves half a file, and one that skips what is stale."""
    monkeypatch.setattr(committed_cells, "RESULT", tmp_path / "cells.json")
    ran: list[tuple[str, str]] = []

    def found(what: str, name: str) -> dict[str, Any]:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append((what, name))
        return {}

    monkeypatch.setattr(committed_cells, "found", found)
    with pytest.raises(KeyboardInterrupt):
        committed_cells.main(["ngram"])
    first = list(ran)
    held = json.loads((tmp_path / "cells.json").read_text())
    assert [name for _, name in first] == list(held)
    held[first[0][1]]["law"]["digest"] = "another"
    committed_cells.save(held)
    ran.clear()
    with pytest.raises(KeyboardInterrupt):
        committed_cells.main(["ngram"])
    assert ran[0] == first[0]
    assert not set(ran[1:]) & set(first)


@pytest.mark.parametrize("drafter", ROWS)
def test_what_is_committed_is_not_violated(drafter: str) -> None:
    """Kills a committed result that accuses the reference; a stale one is for the report to show."""
    assert shown(drafter)[0].verdict != "violated"
