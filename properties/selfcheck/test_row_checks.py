"""The checks of a row, each on a drafter, a rule or a reader that breaks exactly what the check is for."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.checkpoints.reading import checkpoint, tensors
from refengine.engine.block import Block, Round
from refengine.engine.coins import Coins
from refengine.engine.rules.leviathan import leviathan
from refengine.report.tables import battery
from refengine.selfcheck.drafters import checks, contract, damage, peers, table
from refengine.selfcheck.drafters.laws import cells
from refengine.selfcheck.drafters.laws.cells import CELLS
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.row import CHECKS, Row
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

CELL = CELLS["ar/leviathan/mixed"]


DRAW, AR = "refengine.decoder.rows", "refengine.decoder.drafters.ar"
DRAWN = 'self.turn.draw(self.q[-1], ("draft", len(self.path)))'


def plant(monkeypatch: pytest.MonkeyPatch, was: str, now: str) -> None:
    """AR with an edit of how it draws, wherever a cell builds it."""
    edited = edited_module(AR, [Edit(DRAW, was, now)]).AR
    row = replace(ROWS["ar"], remembered=lambda drafter: edited(target_that_remembers("tiny/ar"), drafter.gamma))
    monkeypatch.setitem(ROWS, "ar", row)


@pytest.mark.parametrize(
    "now",
    [
        DRAWN.replace("self.q[-1]", "self.q[-1].sqrt() / self.q[-1].sqrt().sum()"),  # another temperature
        DRAWN.replace("self.q[-1]", "self.q[0]"),  # another row
        "int(self.q[-1].argmax())",  # not drawn at all
    ],
)
def test_draws_that_are_not_of_the_reported_row_are_seen(monkeypatch: pytest.MonkeyPatch, now: str) -> None:
    """Kills a q-contract that compares rows with themselves."""
    plant(monkeypatch, DRAWN, now)
    assert contract.q_contract(CELL).witness


def test_a_lossless_rule_that_accepts_too_little_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an acceptance that is compared with itself: this rule keeps the law and throws drafts away."""

    def wasteful(p: Tensor, block: Block, coins: Coins) -> Round:
        assert block.q is not None
        return leviathan(
            p[:, :2], Block(block.tokens[:, :1], block.parents[:, :1], block.q[:, :1], block.sites[:1]), coins
        )

    assert contract.acceptance(CELL)[0].witness is None
    monkeypatch.setitem(cells.RULES, "leviathan", wasteful)
    found, seen, promised = contract.acceptance(CELL)
    assert found.witness
    assert seen.mean < promised.mean
    assert seen.rate(0) == pytest.approx(promised.rate(0), abs=1e-12)  # what it throws away stands behind the first
    assert seen.rate(1) == 0 < promised.rate(1)


def test_rows_of_another_depth_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a self-draft that draws from the wrong prefix and is forgiven, because the rule corrects any q."""
    sound = contract.self_draft(CELL)
    assert sound
    assert sound.witness is None
    assert sound.blocks > 50
    plant(monkeypatch, "self.turn.row(logits, self.path)", "self.turn.row(logits, self.path[:-1])")
    found = contract.self_draft(CELL)
    assert found
    assert found.witness


def test_candidates_without_rows_have_nothing_to_make_equal() -> None:
    """Kills a self-draft that calls a drafter without rows consistent."""
    assert contract.self_draft(CELLS["ngram/point_mass/mixed"]) is None


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> damage.Strictness:
    target = load_target(FIXTURES / "tiny" / "target", torch.float64)
    return damage.strictness(FIXTURES / "heads" / "medusa", target, (0, 3, 5, 3))


def test_a_strict_reader_lets_nothing_pass(found: damage.Strictness) -> None:
    """Kills a damage that never reaches the file: there are three a tensor, and one more."""
    assert found.unnoticed == []
    assert found.refused == 3 * found.tensors + 1
    assert found.moved > found.tensors


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("found.keys() - table.keys()", "table.keys() - table.keys()", "stray.weight one too many: accepted"),
        ("tensor {name} has shape", "a tensor has shape", "0.0.linear.weight one row longer: refused with another"),
    ],
)
def test_a_reader_that_lets_something_pass_is_seen(
    monkeypatch: pytest.MonkeyPatch, was: str, now: str, said: str
) -> None:
    """Kills a strictness that only counts errors: what is wrong must be refused, and named."""
    edited = edited_module(tensors.__name__, [Edit(tensors.__name__, was, now)])
    monkeypatch.setattr(checkpoint, "read_tensors", edited.read_tensors)
    target = load_target(FIXTURES / "tiny" / "target", torch.float64)
    seen = damage.strictness(FIXTURES / "heads" / "medusa", target, (0, 3, 5, 3)).unnoticed
    assert any(line.startswith(said) for line in seen), seen


def test_two_equal_tensors_are_seen(tmp_path: Path) -> None:
    """Kills a swap that is called seen when nothing moved."""
    folder = tmp_path / "medusa"
    shutil.copytree(FIXTURES / "heads" / "medusa", folder)
    (file,) = folder.glob("*.safetensors")
    tensors = load_file(file)
    save_file(tensors | {"1.0.linear.weight": tensors["0.0.linear.weight"].clone()}, file)
    seen = damage.strictness(folder, load_target(FIXTURES / "tiny" / "target", torch.float64), (0, 3, 5, 3)).unnoticed
    assert "0.0.linear.weight and 1.0.linear.weight swapped: no logit moves" in seen


# --- the table -------------------------------------------------------------------------------------------------------


def test_what_is_not_tested_is_said_where_it_is_true() -> None:
    """Kills a row without a checkpoint that is damaged all the same, and a reason for a check that is not there."""
    for row in ROWS.values():
        assert ("loads" in row.not_tested) == (not row.folder)
        assert not row.folder or (FIXTURES / row.folder).is_dir()
    with pytest.raises(ValueError, match="there is no check 'greedyy'"):
        replace(ROWS["ar"], not_tested={"greedyy": "a slip"})
    with pytest.raises(ValueError, match="state bugs that show"):
        Row(prompt=(1,), plants=())
    assert set(checks.checks("ar")) | {"law", "greedy"} == set(CHECKS)


def test_a_drafter_without_a_row_is_an_error_of_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a drafter that no check runs: forgotten, it is not in the table, and nothing would say so."""
    assert list(table.listing()) == list(ROWS)
    monkeypatch.setattr(table, "PARTS", table.PARTS - {"eagle_trees"})
    with pytest.raises(ImportError, match="drafter eagle_trees has no file"):
        table.listing()
    monkeypatch.setattr(table, "import_module", lambda name: SimpleNamespace(ROWS={"one": ROWS["ar"]}))
    monkeypatch.setattr(table, "PARTS", table.PARTS | {"eagle_trees"})
    with pytest.raises(ImportError, match="two rows have the name one"):
        table.listing()


class Item:
    """A collected test: its marks, and the id of its case."""

    def __init__(self, name: str, case: str, *marks: pytest.Mark) -> None:
        self.nodeid, self.marks, self.callspec = name, marks, SimpleNamespace(id=case)

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]


def test_a_mark_says_whose_peer_a_test_is() -> None:
    """Kills a mark of one case that counts for another, a test that is run without one, and an outcome that is lost."""
    one, whole = pytest.mark.peer("eagle3", case="eagle3_A").mark, pytest.mark.peer("ar").mark
    items: Any = [Item("a", "eagle3_A-1", one), Item("b", "sp_eagle3_A-1", one), Item("c", "", whole), Item("d", "")]
    plugin = peers.Peers()
    plugin.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["a", "c"]
    for name, when, outcome in (("a", "setup", "passed"), ("a", "call", "failed"), ("c", "setup", "skipped")):
        report: Any = SimpleNamespace(nodeid=name, when=when, outcome=outcome, passed=outcome == "passed")
        plugin.pytest_runtest_logreport(report)
    assert plugin.outcomes == {"eagle3": {"a": "failed"}, "ar": {"c": "skipped"}}


def test_a_failing_peer_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an agreement that only asks whether tests ran, and one that holds when none did."""
    outcomes = {"ar": {"test_ar_golden.py::test_logits": "passed", "test_ar_golden.py::test_round": "failed"}}
    monkeypatch.setattr(peers, "outcomes", lambda files: outcomes)
    (finding,) = checks.agrees("ar")
    assert finding.verdict == "violated"
    assert finding.notes == ["test_ar_golden.py::test_round failed"]
    monkeypatch.setattr(peers, "outcomes", lambda files: {})
    assert checks.agrees("ar")[0].verdict == "violated"


def test_the_table_shows_the_gravest_finding_of_a_cell() -> None:
    """Kills a table in which a later consistent finding hides a violated one."""
    (sound,) = checks.incremental("ngram")
    findings: list[Any] = [msgspec.structs.replace(sound, verdict=verdict) for verdict in ("violated", "consistent")]
    for order in (findings, findings[::-1]):
        (cell,) = battery(order).rows["ngram"]
        assert cell
        assert cell.verdict == "violated"
