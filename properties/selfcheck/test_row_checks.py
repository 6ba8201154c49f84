"""The checks of a row, each on a drafter, a rule or a reader that breaks exactly what the check is for."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from refengine.decoder.checkpoints import load
from refengine.decoder.checkpoints.layouts import medusa
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.checkpoints.reading import tensors as tensors_module
from refengine.engine.block import Block, Round
from refengine.engine.coins import Coins
from refengine.engine.rules.leviathan import leviathan
from refengine.report.tables import battery
from refengine.selfcheck.drafters import cells, checks, contract, damage
from refengine.selfcheck.drafters.cells import CELLS
from refengine.selfcheck.drafters.fixtures import FIXTURES, TINY
from refengine.selfcheck.drafters.planted_bugs import AR, PLANTS
from refengine.selfcheck.drafters.table import CHECKS, NOT_TESTED
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module

CELL = CELLS["ar/leviathan/mixed"]


def plant(monkeypatch: pytest.MonkeyPatch, was: str, now: str) -> None:
    """AR with an edit, wherever a cell builds it."""
    monkeypatch.setattr(load, "AR", edited_module(AR, [Edit(AR, was, now)]).AR)


@pytest.mark.parametrize(
    "now",
    [
        "turn.draw(q[-1].sqrt() / q[-1].sqrt().sum(), sites[-1])",  # another temperature
        "turn.draw(q[0], sites[-1])",  # another row
        "int(q[-1].argmax())",  # not drawn at all
    ],
)
def test_draws_that_are_not_of_the_reported_row_are_seen(monkeypatch: pytest.MonkeyPatch, now: str) -> None:
    """Kills a q-contract that compares rows with themselves."""
    plant(monkeypatch, "turn.draw(q[-1], sites[-1])", now)
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
    found, mean, formula = contract.acceptance(CELL)
    assert found.witness
    assert mean < formula


def test_rows_of_another_depth_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a self-draft that draws from the wrong prefix and is forgiven, because the rule corrects any q."""
    sound = contract.self_draft(CELL)
    assert sound
    assert sound.witness is None
    assert sound.blocks > 50
    plant(monkeypatch, "turn.row(logits, path)", "turn.row(logits, path[:-1])")
    found = contract.self_draft(CELL)
    assert found
    assert found.witness


def test_candidates_without_rows_have_nothing_to_make_equal() -> None:
    """Kills a self-draft that calls a drafter without rows consistent."""
    assert contract.self_draft(CELLS["ngram/point_mass/mixed"]) is None


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> damage.Strictness:
    return damage.strictness(FIXTURES / "heads" / "medusa", load_target(FIXTURES / "tiny" / "target"), (0, 3, 5, 3))


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
    edited = edited_module(tensors_module.__name__, [Edit(tensors_module.__name__, was, now)])
    monkeypatch.setattr(medusa, "read_tensors", edited.read_tensors)
    target = load_target(FIXTURES / "tiny" / "target")
    seen = damage.strictness(FIXTURES / "heads" / "medusa", target, (0, 3, 5, 3)).unnoticed
    assert any(line.startswith(said) for line in seen), seen


def test_two_equal_tensors_are_seen(tmp_path: Path) -> None:
    """Kills a swap that is called seen when nothing moved."""
    folder = tmp_path / "medusa"
    shutil.copytree(FIXTURES / "heads" / "medusa", folder)
    (file,) = folder.glob("*.safetensors")
    tensors = load_file(file)
    save_file(tensors | {"1.0.linear.weight": tensors["0.0.linear.weight"].clone()}, file)
    seen = damage.strictness(folder, load_target(FIXTURES / "tiny" / "target"), (0, 3, 5, 3)).unnoticed
    assert "0.0.linear.weight and 1.0.linear.weight swapped: no logit moves" in seen


# --- the table -------------------------------------------------------------------------------------------------------


def test_what_is_not_tested_is_on_the_list() -> None:
    """Kills a cell that is silently left out, and a reason for a drafter or check that is not there."""
    drafters = set(PLANTS)
    assert all(drafter in drafters and check in CHECKS for drafter, check in NOT_TESTED)
    assert {drafter for drafter in drafters if (drafter, "agrees") not in NOT_TESTED} == set(checks.AGREES)
    for drafter in drafters:
        assert (drafter, "loads") in NOT_TESTED or (FIXTURES / TINY[drafter].folder).is_dir()


def test_a_failing_peer_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an agreement that only asks whether tests ran, and one that holds when none did."""
    outcomes = {("test_ar_golden", "test_logits"): "passed", ("test_ar_golden", "test_round"): "failed"}
    monkeypatch.setattr(checks, "tested", lambda: outcomes)
    (finding,) = checks.agrees("ar")
    assert finding.verdict == "violated"
    assert finding.notes == ["test_round failed"]
    monkeypatch.setattr(checks, "tested", dict)
    assert checks.agrees("ar")[0].verdict == "violated"


def test_the_table_shows_the_gravest_finding_of_a_cell() -> None:
    """Kills a table in which a later consistent finding hides a violated one."""
    (sound,) = checks.incremental("ngram")
    findings: list[Any] = [msgspec.structs.replace(sound, verdict=verdict) for verdict in ("violated", "consistent")]
    for order in (findings, findings[::-1]):
        (cell,) = battery(order).rows["ngram"]
        assert cell
        assert cell.verdict == "violated"
