"""The battery on every core: the same findings in the same order, whatever process made them."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from refengine.errors import BadInput
from refengine.report.finding import Finding
from refengine.selfcheck.drafters import parallel
from refengine.selfcheck.drafters.battery import Step, law, steps
from refengine.selfcheck.drafters.cells import CELLS

NAMES = ("ngram/point_mass/mixed/stop", "medusa/point_mass/mixed/stop")


def refused() -> list[Finding]:
    raise BadInput(f"process {os.getpid()}")


def step(name: str, run: Callable[[], list[Finding]]) -> Step:
    return Step(name, name.split("/")[0], run)


def test_findings_come_in_order_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills an order in which places end, a finding that depends on its process, and an exception that is swallowed."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    wanted = [step(name, partial(law, name)) for name in NAMES]
    found = parallel.played([*wanted, step("last", refused)])
    got = [next(found) for _ in wanted]
    assert [one.name for one, _ in got] == list(NAMES)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert [findings for _, findings in got] == [findings for _, findings in parallel.played(wanted)]
    with pytest.raises(BadInput, match="process") as told:
        next(found)
    assert str(os.getpid()) not in str(told.value)


def test_what_is_remembered_is_made_once() -> None:
    """Kills a test run, or a damaged checkpoint, in each of two processes."""
    places = {one.name: one.place for one in steps()}
    assert len({place for name, place in places.items() if name.startswith("agrees")}) == 1
    for a, b in (("eagle1", "eagle2"), ("dspark", "dspark_scheduled"), ("dflash", "dflash_drawn")):
        assert places[f"loads of {a}"] == places[f"loads of {b}"]
    assert all(places[f"exact law of {name}"] == places[f"loads of {CELLS[name].drafter}"] for name in NAMES)
