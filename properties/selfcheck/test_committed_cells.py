"""The committed results of every exact-law cell: what their digest depends on, and what is shown of them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from refengine.selfcheck.drafters import committed_cells
from refengine.selfcheck.drafters.committed_cells import shown
from refengine.selfcheck.drafters.computed_from import content, parts_of
from refengine.selfcheck.drafters.laws.cells import CELLS, Cell, session
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.committed import Committed
from refengine.source_tree import ROOT

CELL = "ngram/point_mass/mixed"


@pytest.mark.parametrize("drafter", ROWS)
def test_a_digest_is_of_what_was_loaded_alone(drafter: str) -> None:
    """Kills a digest of addresses or of memory that nobody has written: no result would ever be current."""
    fresh = parts_of.__wrapped__
    rule = ROWS[drafter].rules[0]
    assert fresh(drafter, 0.0, rule) == fresh(drafter, 0.0, rule)


def digests() -> dict[str, str]:
    return {drafter: parts_of(drafter, 0.0, row.rules[0]) for drafter, row in ROWS.items()}


def test_no_digest_depends_on_the_processor() -> None:
    """Kills a product that is reckoned as a checkpoint is loaded: another processor rounds it otherwise, and all that
    is on record of the drafter is stale there."""
    code = f"import json; from {__name__} import digests; print(json.dumps(digests()))"
    older = os.environ | {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default"}
    said = subprocess.run([sys.executable, "-c", code], env=older, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == digests()


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


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Committed:
    """The record of these tests alone."""
    own = replace(committed_cells.RECORD, file=tmp_path / "cells.json")
    monkeypatch.setattr(committed_cells, "RECORD", own)
    return own


def law_of(name: str, **changes: Any) -> dict[str, Any]:
    counted = dict.fromkeys(committed_cells.COUNTED, 3)
    return {"consistent": True, "tv": 1e-16, **counted, **changes}


def planted_in(name: str, moved: float = 0.1) -> dict[str, Any]:
    return {"a bug": [moved, 0.0, 1.0]}


NAMES = [name for name, cell in CELLS.items() if cell.drafter == "ngram"]
PLANTING = [name for name in NAMES if committed_cells.plants(CELLS[name])]


def recorded(record: Committed, moved: dict[str, float] | None = None) -> None:
    """Results of every cell of one drafter; `moved`: how far the planted bug moves the law of a cell."""
    for name in NAMES:
        record.put(f"law {name}", law_of(name))
    for name in PLANTING:
        record.put(f"planted {name}", planted_in(name, (moved or {}).get(name, 0.1)))


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "consistent"),
        ({"digest": "another"}, "not tested"),
        ({"consistent": False}, "violated"),
        ({"consistent": False, "digest": "another"}, "not tested"),
    ],
)
def test_what_is_shown(change: dict[str, Any], verdict: str, record: Committed) -> None:
    """Kills a stale result that is shown, a missing one that is not missed, and a violated one that is hidden."""
    recorded(record)
    assert shown("ngram")[0].verdict == "consistent"
    entries = record.entries()
    record.write({**entries, f"law {CELL}": {**entries[f"law {CELL}"], **change}})
    (finding,) = shown("ngram")
    assert finding.verdict == verdict
    assert finding.numbers["cells"] == len(NAMES) - (verdict == "not tested")
    for missing in (f"law {CELL}", f"planted {PLANTING[0]}"):
        record.write({key: entry for key, entry in entries.items() if key != missing})
        assert shown("ngram")[0].verdict == "not tested"


def test_a_planted_bug_that_moves_nothing_is_shown(record: Committed) -> None:
    """Kills a committed negative control that nobody looks at."""
    recorded(record, dict.fromkeys(PLANTING, 1e-9))
    (finding,) = shown("ngram")
    idle = [f"a bug in {name}: no effect on what is compared" for name in PLANTING]
    assert (finding.verdict, finding.notes) == ("violated", ["a bug: it shows in no cell", *idle])
    assert finding.numbers["planted bugs that move the law"] == 0


@pytest.mark.parametrize("drafter", ROWS)
def test_state_bugs_are_planted_under_every_rule(drafter: str) -> None:
    """Kills a policy of the planted cells that a drafter or one of its rules is not run under."""
    planted_under = {cell.rule for cell in CELLS.values() if cell.drafter == drafter and committed_cells.plants(cell)}
    assert planted_under == set(ROWS[drafter].rules)


def test_a_run_goes_on_where_it_was_cut_off(monkeypatch: pytest.MonkeyPatch, record: Committed) -> None:
    """Kills a run that starts over, one that leaves half a file, and one that skips what is stale."""
    ran: list[str] = []

    def entry(key: str, findings: object) -> dict[str, Any]:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(key)
        return {}

    monkeypatch.setattr(committed_cells, "found", lambda key: [])
    monkeypatch.setattr(committed_cells, "entry", entry)
    with pytest.raises(KeyboardInterrupt):
        committed_cells.main(["ngram"])
    first = list(ran)
    entries = record.entries()
    assert first == list(entries)
    record.write({**entries, first[0]: {**entries[first[0]], "digest": "another"}})
    ran.clear()
    with pytest.raises(KeyboardInterrupt):
        committed_cells.main(["ngram"])
    assert ran[0] == first[0]
    assert not set(ran[1:]) & set(first)


@pytest.mark.parametrize("drafter", ROWS)
def test_what_is_committed_is_not_violated(drafter: str) -> None:
    """Kills a committed result that accuses the reference; a stale one is for the report to show."""
    assert shown(drafter)[0].verdict != "violated"
