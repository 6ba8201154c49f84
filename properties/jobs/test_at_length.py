"""Campaigns of draws: what is counted, what the counts say, and that no two calls of a campaign are seeded alike."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refengine import cli
from refengine.audit.at_length import counted, judged
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel import at_length as kernel
from refengine.audit.kernel.history import History
from refengine.audit.kernel.request import Request
from refengine.evidence.alpha import ALPHA
from refengine.jobs.ranges import Range
from refengine.selfcheck import at_length as engine
from refengine.selfcheck.rounds import table
from refengine.source_tree import FIXTURES

SUBJECTS = str(FIXTURES / "subjects")
FEW = [item for item in cases() if item.cell is None]


@settings(deadline=None)
@given(st.sampled_from(FEW), st.integers(0, 2**32 - 1))
def test_tokens_are_counted_where_an_audit_sees_them(item: Any, seed: int) -> None:
    """Kills a count at the site of another lane, position or context."""
    source = np.random.default_rng(seed)
    tokens = source.integers(item.vocabulary, size=(20, item.lanes, item.gamma + 1)).astype(np.int32)
    tokens[np.arange(item.gamma + 1) > source.integers(item.gamma + 1, size=tokens.shape[:2])[..., None]] = -1
    draws = History(item, None).draws(tokens, 0)
    wanted = np.zeros((item.p.size // item.vocabulary, item.vocabulary), dtype=np.int64)
    np.add.at(wanted, (draws.site, draws.token), 1)
    lanes = np.tile(np.arange(item.lanes), 20)
    assert np.array_equal(counted(item, lanes, tokens.reshape(-1, item.gamma + 1)), wanted)


def counts(p: np.ndarray[Any, Any], n: int) -> list[int]:
    return np.round(p * n).astype(int).ravel().tolist()


@pytest.mark.parametrize(("share", "n", "accused"), [(0.0, 10**10, False), (0.01, 10**6, True), (1e-4, 10**9, True)])
def test_what_counts_say(share: float, n: int, accused: bool) -> None:
    """Kills a verdict that counts by the billion do not move, or that they overflow."""
    item = table(3, 5, 3)
    mixed = (1 - share) * item.p + share * np.roll(item.p, 1, axis=-1) * (item.p > 0)
    found = judged([item], {item.name: counts(mixed, n)}, ALPHA)
    assert found.accused == accused, found
    assert 0 < found.seen < 1


def test_one_impossible_token_in_a_billion() -> None:
    """Kills a hard mask that is judged by how often it breaks."""
    item = table(3, 5, 3)
    seen = counts(item.p, 10**9)
    at = int(np.flatnonzero(item.p.ravel() == 0)[0])
    seen[at] = 1
    found = judged([item], {item.name: seen}, ALPHA)
    assert found.accused
    assert (found.farthest["token"], found.farthest["times"]) == (at % item.vocabulary, 1)


@given(st.integers(0, 2**32 - 1))
def test_seeds_are_mixed_and_can_be_taken_back(x: int) -> None:
    """Kills a mix that maps two blocks of calls to one seed."""
    mixed = kernel.mixed(x)
    assert 0 <= mixed < kernel.WORD
    y = mixed ^ mixed >> 16
    y = y * pow(0xC2B2AE35, -1, kernel.WORD) % kernel.WORD
    y ^= y >> 13 ^ y >> 26
    y = y * pow(0x85EBCA6B, -1, kernel.WORD) % kernel.WORD
    assert y ^ y >> 16 == x


def test_every_block_has_seeds_of_its_own() -> None:
    """Kills shards or inputs that make the same calls: the shards of a campaign are one counter, cut."""
    jobs = kernel.jobs(Request("correct:leviathan", path=SUBJECTS, calls=10 * kernel.BLOCK * len(kernel.inputs())))
    ranges = [job.call.args[2] for job in jobs]  # type: ignore[attr-defined]
    assert [one.first for one in ranges] == [0, *np.cumsum([one.count for one in ranges])[:-1].tolist()]
    first = [kernel.seeds(5, Range(n * kernel.BLOCK, 3)) for n in range(500)]
    assert all((rows[1:] == -1).all() for rows in first)
    assert len({int(seed) for rows in first for seed in rows[0]}) == 3 * len(first)
    with pytest.raises(ValueError, match="beyond"):
        kernel.seeds(0, Range(kernel.WORD * kernel.BLOCK, 1))


@pytest.mark.parametrize(
    ("subject", "verdict"),
    [("correct:leviathan", "consistent"), ("defective:residual_is_p", "violated"), ("defective:raises", "not tested"),
     ("defective:outside", "violated")],
)  # fmt: skip
def test_functions_at_length(subject: str, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a campaign without power, one that accuses what is right, and an exception that is taken for a law."""
    three = [item for item in FEW if item.name in ("reversed", "coin", "one draft")]
    monkeypatch.setattr(kernel, "inputs", lambda: three)
    monkeypatch.setattr(kernel, "BLOCK", 256)
    request = Request(subject, path=SUBJECTS, calls=6000)
    found = kernel.finding(request, [job.call() for job in kernel.jobs(request)])
    assert found.verdict == verdict, found
    assert (found.witness is not None) == (verdict == "violated")


# --- the command -----------------------------------------------------------------------------------------------------


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", "engine", "leviathan", "--rounds", "4000", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_campaign_goes_on_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills a report that depends on the number of processes, or on where a run was cut off, and a journal that is
    not looked at."""
    monkeypatch.setattr(engine, "SHARD", 700)
    journal = tmp_path / "journal"
    assert run("--workers", "1", "--out", tmp_path / "one.json", "--journal", journal) == 0
    assert "VERDICT consistent" in capsys.readouterr().out
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) // 2])
    assert run("--workers", "2", "--out", tmp_path / "two.json", "--journal", journal) == 0
    assert capsys.readouterr().err.count("from the journal") == data[: len(data) // 2].count(b"\n")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    numbers = json.loads((tmp_path / "one.json").read_text())["findings"][0]["numbers"]
    assert numbers["tokens"] > 4000
    assert run("--journal", journal, "--seed", "1") == 2
    assert "is the journal of another campaign (seed 0 there, 1 here)" in capsys.readouterr().err
    assert run("--seed", str(2**32)) == 2
    assert "is not below 2^32" in capsys.readouterr().err
