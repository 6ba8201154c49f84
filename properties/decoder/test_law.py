"""The exact law of the real loops, and the battery's own power: every planted state bug must move it."""

import random
from dataclasses import replace
from functools import cache

import pytest

from refengine.exact.law import tv
from refengine.report.finding import Finding, Quantity
from refengine.selfcheck.claims.chains import cells
from refengine.selfcheck.drafters import published_loops
from refengine.selfcheck.drafters.battery import law, steps
from refengine.selfcheck.drafters.laws.cells import (
    CELLS,
    EXACT,
    MOVED,
    SHORT,
    cell_law,
    completed,
    target_law,
)
from refengine.selfcheck.drafters.published_loops import LOOPS, seed_loop
from refengine.selfcheck.drafters.table import ROWS
from refengine.selfcheck.recorded import AGAIN, ON_RECORD, STALE, settle
from refengine.source_tree import commit_seed

DRAFTERS = sorted(ROWS)
# The cells whose planted bugs are run at this commit though nothing has changed since they are on record.
ANEW = frozenset(random.Random(commit_seed()).sample(SHORT, 4))


@cache
def found(name: str) -> Finding:
    """The law of a cell, which is enumerated once for the tests that read it."""
    (finding,) = law(name)
    return finding


@pytest.mark.on_record
@pytest.mark.parametrize("name", dict.fromkeys([*SHORT, *cells().values()]))  # block is nobody's first rule
def test_the_loop_has_the_targets_law(name: str) -> None:
    """Kills any defect of caches, positions, rollback, stop or sampling that reaches the tokens of these cells."""
    finding = found(name)
    assert finding.verdict == "consistent", finding.notes
    assert finding.numbers["live states that differ"] == 0
    assert finding.numbers["live states equal to a recompute"] >= 15


@pytest.mark.on_record
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_event_carries_mass(drafter: str) -> None:
    """Kills a cell that proves nothing because its loop never rejects, never rolls back or never stops inside."""
    most: dict[str, float] = {}
    for name in SHORT:
        if CELLS[name].drafter == drafter:
            for what, mass in found(name).numbers.items():
                if what.startswith("mass with ") and isinstance(mass, Quantity):
                    most[what] = max(most.get(what, 0.0), mass.value)
    assert len(most) == 4
    assert all(mass >= 0.05 for mass in most.values()), most


@pytest.mark.parametrize("name", SHORT)
def test_planted_state_bugs_move_the_law(name: str) -> None:
    """Kills a cell that cannot see a missing crop, a shifted position, a stale tap or a stale confidence.

    What nothing has changed of since it was recorded is read; what has changed is run, and so is a sample.
    """
    (step,) = (step for step in steps() if step.name == f"planted state bugs in {name}")
    findings, how = settle(step, frozenset({step.name} if name in ANEW else ()))
    assert how in (ON_RECORD, STALE, AGAIN), how
    assert len(findings) == sum(
        not plant.truncated or CELLS[name].threshold > 0 for plant in ROWS[CELLS[name].drafter].plants
    )
    by_name = {plant.diagnosis: plant for plant in ROWS[CELLS[name].drafter].plants}
    for finding in findings:
        assert finding.verdict == "violated", finding.id
        tokens = finding.numbers["tv of tokens"]
        assert isinstance(tokens, Quantity)
        if by_name[finding.diagnosis].changes == "rounds":
            assert tokens.value <= EXACT, f"{finding.id}: a drafter's own state must not reach the tokens"
        else:
            assert tokens.value > MOVED, finding.id


def test_an_unfinished_law_is_topped_up() -> None:
    """Kills a comparison that drops histories which are still short after the rounds."""
    cell = replace(CELLS["ar/leviathan/mixed/stop"], rounds=1)
    loop = cell_law(cell)
    assert any(len(outcome.out) < cell.length and not outcome.stopped for outcome in loop.law)
    assert abs(sum(completed(cell, loop).values()) - 1) < EXACT
    assert tv(completed(cell, loop), target_law(cell)) <= EXACT


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_published_loops_are_as_far_off_as_arithmetic_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a negative example that is violated whatever it runs: with a drawn first token the distance is another."""
    (finding,) = seed_loop(name)
    assert finding.verdict == "violated"
    assert finding.magnitude
    assert finding.magnitude.tv.value > 0.1
    monkeypatch.setattr(published_loops, "FromArgmax", published_loops.Session)
    (sound,) = seed_loop(name)
    assert sound.verdict == "consistent"
