"""Steps in processes: the same findings whatever process made them, and none that is lost."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from properties.helpers import report_example as example
from refengine.errors import BadInput
from refengine.jobs.steps import played, run_steps
from refengine.report.finding import Finding
from refengine.report.journal import Journal
from refengine.report.step import Step
from refengine.report.terminal import Progress


def made(name: str, place: str = "") -> list[Finding]:
    """One finding, which says in a note which process made it."""
    (first, *_) = example.references()
    values = {field: getattr(first, field) for field in first.__struct_fields__}
    return [Finding(**{**values, "id": name, "notes": [str(os.getpid())]})]


def refused() -> list[Finding]:
    raise BadInput(f"process {os.getpid()}")


def ended() -> list[Finding]:
    os._exit(7)


def step(name: str, run: Callable[[], list[Finding]] | None = None) -> Step:
    return Step(name, run or partial(made, name), name.split("/")[0])


def test_steps_of_one_place_share_a_process_and_none_is_lost() -> None:
    """Kills a place that is spread over processes, a step that runs twice or not at all, and work in the caller."""
    steps = [step(f"{place}/{number}") for place in "abc" for number in range(3)]
    found = {one.name: findings for one, (findings, _), _ in played(steps, processes=2)}
    assert sorted(found) == [one.name for one in steps]
    by_place = {place: {found[f"{place}/{n}"][0].notes[0] for n in range(3)} for place in "abc"}
    assert all(len(processes) == 1 for processes in by_place.values())
    assert str(os.getpid()) not in set.union(*by_place.values())
    here = {one.name: findings for one, (findings, _), _ in played(steps, processes=1)}
    assert {f.notes[0] for findings in here.values() for f in findings} == {str(os.getpid())}


@pytest.mark.parametrize(("run", "error", "says"), [(refused, BadInput, "process"), (ended, RuntimeError, "code 7")])
def test_what_a_step_raises_is_raised_here(
    run: Callable[[], list[Finding]], error: type[Exception], says: str, tmp_path: Path
) -> None:
    """Kills an exception that is swallowed, a death that is waited for, and finished steps that are not kept."""
    steps = [step("a/0"), step("a/1", run), step("b/0")]
    with Journal(tmp_path / "journal", "key") as journal, pytest.raises(error, match=says):
        run_steps(steps, journal, processes=2)
    with Journal(tmp_path / "journal", "key") as journal:
        assert journal.finished("a/0") is not None
        assert journal.finished("a/1") is None


def test_nothing_stays_silent_for_long(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a long step without a word where there is no terminal, and bars and escape codes in logs."""
    monkeypatch.setattr("refengine.report.terminal.LINE_S", 0.05)
    with Progress("report", 3) as shown:
        shown.at("the long one [bold]")
        time.sleep(0.3)
        shown.finish("the long one: done")
    lines = capsys.readouterr().err.splitlines()
    assert sum("the long one [bold]" in line for line in lines) >= 3
    assert lines[-1] == "[1/3] the long one: done"
    assert not any("\x1b" in line for line in lines)


def test_a_full_disk_costs_the_journal_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a run of an hour that ends because its journal could not be written."""

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with Journal(tmp_path / "journal", "key") as journal:
        monkeypatch.setattr(os, "write", full)
        lines = run_steps([step("a"), step("b")], journal, processes=1)
    assert [line.step for line in lines] == ["a", "b"]
    assert capsys.readouterr().err.count("no journal from here on: No space left on device") == 1
