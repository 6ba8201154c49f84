"""The committed histories: what is run, what is shown of it, and where a run that was cut off goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refengine.selfcheck.drafters import committed_bits
from refengine.selfcheck.drafters.committed_bits import PADDED, SHARD, SHARDS, company, keys, parsed, shown
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.committed import Committed


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Committed:
    """A record of these tests alone, whose digests are of the key."""
    own = replace(committed_bits.RECORD, file=tmp_path / "bits.json", digest=str)
    monkeypatch.setattr(committed_bits, "RECORD", own)
    return own


def entry(key: str, **changes: Any) -> dict[str, Any]:
    return {"histories": SHARD + 1, "rounds": 7, "otherwise": 0, "first": [], "digest": key, **changes}


def test_ten_thousand_histories_of_every_drafter_are_asked_for() -> None:
    """Kills a drafter or a dtype that is left out, and a bulk of one drafter before the others are looked at."""
    for drafter in ROWS:
        for dtype in SHARDS:
            mine = [key for key in keys() if parsed(key)[:2] == (drafter, dtype)]
            assert dtype == PADDED or SHARD * len(mine) >= 10_000
    assert SHARD * len(ROWS) >= 10_000  # schedules of the ordinary mode have several histories, and are in every shard
    assert {parsed(key)[0] for key in keys()[: len(ROWS) * len(SHARDS)]} == set(ROWS)


def test_what_is_shown(record: Committed) -> None:
    """Kills a record with a hole that is called consistent, a stale shard that counts, an exception that is hidden."""
    whole = {key: entry(key) for key in keys()}
    record.write(whole)
    (finding,) = shown()
    assert finding.verdict == "consistent"
    assert finding.numbers["histories of a drafter in bfloat16, at least"] == 10 * (SHARD + 1)
    assert finding.numbers["rounds"] == 7 * len(keys())
    last = keys()[-1]
    for changed in ({last: entry("another")}, {}):
        record.write({key: found for key, found in (whole | changed).items() if changed or key != last})
        (finding,) = shown()
        assert finding.verdict == "not tested"
        assert finding.reason.startswith(f"1 of {len(keys())} shards")
    record.write({last: entry(last, otherwise=1, first=["other bits after [1]"])})
    (finding,) = shown()
    assert (finding.verdict, finding.notes) == ("violated", [f"{last}: other bits after [1]"])


def test_a_run_goes_on_where_it_was_cut_off(monkeypatch: pytest.MonkeyPatch, record: Committed) -> None:
    """Kills a run that starts over, one that loses what it had, and exit code 0 of one that found something."""
    ran: list[str] = []

    def made(key: str) -> dict[str, Any]:
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(key)
        return entry(key, otherwise=len(ran))

    monkeypatch.setattr(committed_bits, "entry", made)
    with pytest.raises(KeyboardInterrupt):
        committed_bits.main(["ngram", "--workers", "1"])
    assert ran == list(record.entries())
    first = list(ran)
    record.write({key: entry(key) for key in keys() if parsed(key)[0] == "ngram" and key != first[0]})
    ran.clear()
    assert committed_bits.main(["ngram", "--workers", "1"]) == 1
    assert ran == first[:1]


def test_shards_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills shards that are one and the same, and sizes of drafts, buffers and passes that never vary."""
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(committed_bits, "Company", lambda row, dtype, slots=None, lanes=None, mode="": made.append(
        (repr(row.options), slots, lanes, mode)
    ))  # fmt: skip
    scripts = {str(committed_bits.drawn(company("eagle2", "float32", n)[1], range(9))) for n in range(10)}
    assert len(scripts) == 10
    assert all(len(set(column)) > 1 for column in zip(*made, strict=True))
