"""The journal: kill -9 loses at most the running step, and nothing counts twice."""

import datetime
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import refengine
from properties.helpers import report_example as example
from refengine.errors import BadInput
from refengine.jobs.steps import run_steps
from refengine.report.canonical import canonical
from refengine.report.finding import Finding
from refengine.report.journal import Journal, Line, run_key
from refengine.report.report import make_report
from refengine.report.run_record import save_run
from refengine.report.step import Step

FINDINGS: dict[str, Callable[[], list[Finding]]] = {
    "subjects": example.subjects,
    "references": example.references,
    "controls": example.controls,
}
CHILD = """
import sys, time
from pathlib import Path
from properties.report import test_journal as t
from refengine.report.journal import Journal
from refengine.report.step import Step
from refengine.jobs.steps import run_steps
def stuck():
    yield t.FINDINGS["controls"]()[0]
    print("stuck", flush=True)
    time.sleep(600)
steps = [Step("subjects", t.FINDINGS["subjects"]), Step("references", t.FINDINGS["references"]),
            Step("controls", stuck)]
with Journal(Path(sys.argv[1]), "key") as journal:
    run_steps(steps, journal)
"""


def counted(calls: list[str]) -> list[Step]:
    def step(name: str) -> Step:
        def function() -> list[Finding]:
            calls.append(name)
            return FINDINGS[name]()

        return Step(name, function)

    return [step(name) for name in FINDINGS]


def run(path: Path, key: str = "key", *, fresh: bool = False) -> tuple[list[str], str]:
    """Which sections ran, and the report that came out."""
    calls: list[str] = []
    with Journal(path, key, fresh=fresh) as journal:
        lines = run_steps(counted(calls), journal)
    report = make_report([f for line in lines for f in line.made], seed=1)
    return calls, canonical(report)


@pytest.fixture
def uninterrupted(tmp_path: Path) -> str:
    return run(tmp_path / "other.journal")[1]


def test_kill_minus_9_then_resume(tmp_path: Path, uninterrupted: str) -> None:
    """Kills: buffered writes lost on SIGKILL, half a step kept, a finished step run or counted again."""
    path = tmp_path / "journal"
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"stuck\n"
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    assert run(path) == (["controls"], uninterrupted)
    assert run(path) == ([], uninterrupted)


def test_torn_last_line_is_dropped_wherever_it_tears(tmp_path: Path, uninterrupted: str) -> None:
    """Kills a torn line that is read, that stops the resume, or that the next line is glued to."""
    path = tmp_path / "journal"
    run(path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in {last + 1, last + 2, last + 500, (last + len(whole)) // 2, len(whole) - 2, len(whole) - 1}:
        path.write_bytes(whole[:cut])
        assert run(path) == (["controls"], uninterrupted)
        assert run(path) == ([], uninterrupted)


def test_torn_line_longer_than_what_follows(tmp_path: Path, uninterrupted: str) -> None:
    """Kills overwriting a torn line without cutting it off, so that its tail stands behind the next line."""
    path = tmp_path / "journal"
    run(path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[:last] + b"x" * (2 * len(whole)))
    assert run(path) == (["controls"], uninterrupted)
    assert path.read_bytes().count(b"x" * 99) == 0


@pytest.mark.parametrize("text", ["of one line", '{\n "a": 1\n}', "one\ntwo\n"])
def test_what_is_no_journal_is_left_as_it_is(text: str, tmp_path: Path) -> None:
    """Kills a file of somebody's, named by mistake, that loses its last line or all of it."""
    path = tmp_path / "precious"
    path.write_text(text)
    with pytest.raises(BadInput, match="precious is"):
        Journal(path, "a run")
    assert path.read_text() == text


def test_damage_before_the_end_is_refused(tmp_path: Path) -> None:
    """Kills silently skipping a damaged line, which would be a silent skip of its findings."""
    path = tmp_path / "journal"
    run(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\x00" + whole[101:])
    with pytest.raises(BadInput, match=r"damaged at line 1 .*--fresh"):
        run(path)
    assert path.read_bytes()[:100] == whole[:100]
    assert run(path, fresh=True)[0] == list(FINDINGS)


def test_another_key_runs_everything_again(tmp_path: Path) -> None:
    """Kills findings of other sources or another seed passed off as this run's."""
    path = tmp_path / "journal"
    run(path, "one")
    assert run(path, "two")[0] == list(FINDINGS)
    assert run(path, "one")[0] == run(path, "two")[0] == []


def test_fresh_ignores_the_journal(tmp_path: Path) -> None:
    """Kills --fresh that still resumes, or that leaves old lines to be counted beside the new."""
    path = tmp_path / "journal"
    run(path)
    assert run(path, fresh=True)[0] == list(FINDINGS)
    assert path.read_text().count("\n") == len(FINDINGS)


def test_key_depends_on_everything_that_findings_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a key that forgets the seed, the budget, the options, or an edited or renamed source file."""
    (tmp_path / "exact").mkdir()
    source = tmp_path / "exact" / "rule.py"
    source.write_text("a = 1\n")
    monkeypatch.setattr(refengine, "__file__", str(tmp_path / "__init__.py"))
    first = run_key(seed=1, alpha=1e-6)
    assert first == run_key(seed=1, alpha=1e-6)
    others = [run_key(seed=2, alpha=1e-6), run_key(seed=1, alpha=1e-5), run_key(seed=1, alpha=1e-6, options="full")]
    source.write_text("a = 2\n")
    others.append(run_key(seed=1, alpha=1e-6))
    source.write_text("a = 1\n")
    source.rename(tmp_path / "exact" / "other.py")
    others.append(run_key(seed=1, alpha=1e-6))
    assert len({first, *others}) == 6


def test_two_runs_cannot_share_a_journal(tmp_path: Path) -> None:
    """Kills two processes interleaving their lines."""
    with Journal(tmp_path / "journal", "key"), pytest.raises(BadInput, match="another run is writing"):
        Journal(tmp_path / "journal", "key", fresh=True)
    Journal(tmp_path / "journal", "key").close()


def test_crash_of_a_section_keeps_the_finished_ones(tmp_path: Path, uninterrupted: str) -> None:
    """Kills journalling at the end of the run, and a crashed section recorded as finished with no findings."""

    def crash() -> list[Finding]:
        raise RuntimeError("section crashed")

    path = tmp_path / "journal"
    steps = [Step("subjects", example.subjects), Step("references", crash)]
    with Journal(path, "key") as journal, pytest.raises(RuntimeError, match="section crashed"):
        run_steps(steps, journal)
    assert run(path) == (["references", "controls"], uninterrupted)


def test_names_are_unique(tmp_path: Path) -> None:
    """Kills: two steps of one name, of which the second would be read from the first's line."""
    steps = [Step("a", example.subjects), Step("a", example.references)]
    with Journal(tmp_path / "journal", "key") as journal, pytest.raises(ValueError, match="two steps are called"):
        run_steps(steps, journal)


def test_progress_is_one_plain_line_a_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills bars and escape codes in logs, and progress on stdout, where the verdict line belongs."""
    run(tmp_path / "journal")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b" not in captured.err
    assert [line.split(":")[0] for line in captured.err.splitlines()] == [
        "[1/3] subjects",
        "[2/3] references",
        "[3/3] controls",
    ]


def test_times_and_the_machine_are_told_in_run_json(tmp_path: Path) -> None:
    """Kills: a run.json that loses the steps of the interrupted run, or their seconds."""
    with Journal(tmp_path / "journal", "key") as journal:
        journal.append(Line(run="", step="subjects", made=example.subjects(), seconds=12.346))
        lines = run_steps(counted([]), journal)
    started = datetime.datetime(2026, 11, 21, 3, tzinfo=datetime.UTC)
    save_run(tmp_path / "run.json", lines, started=started, key="key")
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["steps"][0] == {"name": "subjects", "seconds": 12.346, "findings": 4, "how": ""}
    assert [step["name"] for step in record["steps"]] == list(FINDINGS)
    assert (record["run"], record["started"]) == ("key", "2026-11-21T03:00:00+00:00")
