"""The table at the end of `make stat` says what its lines say, to someone who has not read the tests."""

import pytest

from statistical_tests.table import LOOP, TABLES, Line, lines_of, off, shown

pytestmark = pytest.mark.stat


def made(drafter: str = "ar", drafts: str = TABLES, chi: float = 100.0, tv: float = 0.01, kept: float = 0.5) -> Line:
    means = (kept, 0.5, 0.001), (2.0, 2.0, 0.01)
    return Line(
        drafter, "without_replacement", drafts, 10_000_000, 2_000_000, tv, 0.0072, *means, {"tokens": (chi, 100)}
    )


def test_the_worst_of_each_kind_stands_above_the_table() -> None:
    """Kills a summary that names the first line, or the best one."""
    lines = [made("a"), made("b", chi=190.0), made("c", tv=0.02), made("d", kept=0.4965), made("e")]
    short = shown(lines)[:5]
    assert short[1] == "5 samples of 5 drafters: nothing speaks against it."
    for said, name in zip(short[2:], ("b", "c", "d"), strict=True):
        assert f" {name}, without_replacement, {TABLES}" in said
    assert off(lines[3].kept) == pytest.approx(-3.5)
    assert short[4].split()[2] == "3.5"
    assert short[4].endswith("of 10"), "two means of each line"


def test_a_line_whose_test_failed_is_shown_as_such() -> None:
    """Kills a table of what passed alone, in which a drafter that fails is not missed."""
    lines = [made("a"), made("b", chi=1000.0)]
    text = shown(lines, failed=[lines[1]])
    assert "1 FAILED" in text[1]
    assert [line.split()[0] for line in text if line.endswith("  FAILED")] == ["b"]


def test_the_table_fits_a_terminal_and_its_columns_stand_under_their_names() -> None:
    """Kills a column that runs into its neighbour, and lines that wrap."""
    text = shown([made("dflash_transformers", LOOP), made("dflash_transformers", TABLES, chi=1e4)])
    assert max(map(len, text)) <= 120
    (head,) = (line for line in text if line.startswith("drafter   "))
    rows = [line for line in text if line.startswith("dflash_transformers without")]
    assert len(rows) == 2
    for row in rows:
        assert len(row) == len(head)
        assert len(row.replace(f"{LOOP} 20%", LOOP).split()) == len(head.replace("at most", "at-most").split())


def test_every_column_is_explained_above_the_table() -> None:
    """Kills a column whose name is explained nowhere."""
    text = shown([made()])
    at = next(i for i, line in enumerate(text) if line.startswith("drafter   "))
    above = "\n".join(text[: at - 1])
    for name in set(text[at].replace("at most", "at-most").split()) | {"TV", "1st draft kept", "tokens a round"}:
        assert name.replace("-", " ") in above, name


def test_nothing_is_shown_of_no_lines() -> None:
    """Kills a legend, or an error, at the end of a run without drafters."""
    assert shown(lines_of([])) == []
