"""The page of benchmarks: what was measured is drawn, and a part that failed or was cut off is said to have been."""

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import all as bench
from benchmarks import detection, engine_throughput, frontier, turns, unseen
from refengine.report import plots


def growth(ratios: list[float]) -> dict[str, Any]:
    """A part that measured one series."""
    rows = [
        {"series": "V", "size": 10**i, "ratio": r, "smallest": r / 2, "largest": 2 * r} for i, r in enumerate(ratios)
    ]
    return {"found": {"growth": rows}}


def test_a_line_is_drawn_through_every_point_with_its_spread() -> None:
    """Kills: a point that is left out, and axes that are not logarithmic (equal ratios are equal steps)."""
    ((_, _, svg),) = bench.figures({"growth": growth([1.0, 10.0, 100.0])})
    dots = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', str(svg))]
    assert len(dots) == 3
    assert dots[1][0] - dots[0][0] == pytest.approx(dots[2][0] - dots[1][0], abs=0.02)
    assert dots[1][1] - dots[0][1] == pytest.approx(dots[2][1] - dots[1][1], abs=0.02)
    assert dots[0][1] > dots[1][1] > dots[2][1]


def test_one_point_is_drawn() -> None:
    """Kills: a division by the width of a window around one point."""
    columns = {"series": ["a"], "x": [1], "y": [2.0], "low": [2.0], "high": [2.0]}
    assert plots.growth(columns | {"x name": ["x"], "y name": ["y"]})


def test_what_was_measured_is_text_and_not_markup() -> None:
    """Kills: a figure's name that is written into the page as HTML."""
    text = bench.page({"versions": {"python": "3"}, "parts": {"<script>": {"found": {"a": "<b>"}}}})
    assert "<script>" not in text
    assert "&lt;b&gt;" in text


def test_a_part_that_fails_or_takes_too_long_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a benchmark that ended badly and is passed over in silence."""
    failed = bench.run(bench.Part("detection", ("--no-such-option",), 300), tmp_path)
    assert failed["failed"] == "exit code 2"
    assert "found" not in failed
    monkeypatch.setattr(sys, "executable", "sleep")
    monkeypatch.setattr(bench.subprocess, "run", cut_off)
    assert bench.run(bench.Part("growth", (), 1), tmp_path)["cut off"] == "after 1 s"


def cut_off(command: list[str], timeout: float, **options: Any) -> None:
    raise bench.subprocess.TimeoutExpired(command, timeout)


def test_processor_time_is_limited() -> None:
    """Kills: a law that runs on after its minute, and a limit that is still armed after the block."""
    with pytest.raises(turns.OverTheLimit), turns.at_most(0.05):
        spend(60.0)
    with turns.at_most(0.05):
        pass
    spend(0.1)


def spend(seconds: float) -> None:
    """Processor time."""
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        pass


def test_the_frontier_is_where_a_law_no_longer_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: a frontier that goes on after the first law over the limit, or does not say where it ended."""

    def one(rule: str, vocabulary: int, gamma: int, rounds: int) -> dict[str, Any]:
        if gamma > 2:
            raise turns.OverTheLimit
        return {"gamma": gamma}

    monkeypatch.setattr(frontier, "on_tables", one)
    rows = frontier.reached("leviathan", 2, 1, 60.0)
    assert [row["gamma"] for row in rows] == [1, 2, 3]
    assert rows[-1]["over"] == 60.0


def test_one_law_of_the_frontier_is_measured_beside_its_walk() -> None:
    """Kills: a ratio of times of two different laws; the law's distance from the target is exactly 0."""
    row = frontier.on_tables("leviathan", 2, 2, 1)
    assert row["TV"] == "0"
    assert (row["runs"], row["paths"]) == (3, 24)
    assert row["walk / merged"] > 0


def test_no_class_is_found_with_fewer_calls_than_there_can_be() -> None:
    """Kills: Wald's bound and calls that were taken from different inputs. A median over seeds may lie below the bound,
    which is on the mean, but not by a factor of two; a token of probability zero, when it comes, ends an audit at once.
    """
    price = {"start": 1.0, "call": 0.001}
    rows = detection.listed(price)
    assert len(rows) > 50
    for row in rows:
        if row["ended"] == "rejected":
            assert row["calls"] >= row["fewest"] / 2, row
            assert row["seconds"] == pytest.approx(1.0 + 0.001 * row["calls"], abs=0.01)


def test_a_run_that_finds_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Kills: a median of no ratios, which ends a short run without its result."""
    unseen.summary([{"ended": "not detected", "ratio": ratio} for ratio in (0.1, 12.0)])
    assert capsys.readouterr().out.splitlines() == [
        "found 0 of 2, 0 of them within 10 x",
        "not found: 2, 1 of them although worth 10 x",
    ]
    unseen.summary([{"ended": "rejected", "ratio": ratio} for ratio in (2.0, 20.0)])
    assert "found 2 of 2, 1 of them within 10 x\nratio 11.00 (median), 20.00 (most)" in capsys.readouterr().out


def test_a_peers_version_is_that_of_the_package_around_its_file(tmp_path: Path) -> None:
    """Kills: figures beside a peer of no version, and the version of another package in the same place."""
    for name in ("vllm-0.33.0.dist-info", "vllm_other-1.dist-info", "vllm/v1"):
        (tmp_path / name).mkdir(parents=True)
    assert engine_throughput.version_of("vllm", tmp_path / "vllm" / "v1" / "file.py") == "0.33.0"
    assert engine_throughput.version_of("sglang", tmp_path / "vllm" / "v1" / "file.py") == "unknown"


def test_detection_reads_what_power_and_unseen_wrote() -> None:
    """Kills: a reader of the committed campaigns that their writers have left behind."""
    price = {"start": 1.0, "call": 0.0}
    for rows in (detection.listed(price), detection.unlisted(price)):
        assert rows
        assert all(row["seconds"] == 1.0 for row in rows)
