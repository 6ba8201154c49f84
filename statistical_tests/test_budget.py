"""The budget is shared by no more tests than it was split for."""

import ast
from pathlib import Path

import pytest

from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import RESULTS
from statistical_tests.budget import SCALES, TESTS
from statistical_tests.table import LINES
from statistical_tests.test_drafters import PAIRS
from statistical_tests.test_loop import QUESTIONS
from statistical_tests.test_rules import LOSSLESS
from statistical_tests.test_wide import RULES

pytestmark = pytest.mark.stat

RESULT = RESULTS / "stat_long.txt"


def test_there_are_no_more_tests_than_the_budget_was_split_for() -> None:
    """Kills a family-wise budget that every new test makes untrue."""
    count = 0
    spending = [text for path in Path(__file__).parent.glob("test_*.py") if "ALPHA" in (text := path.read_text())]
    for text in spending:  # in the others nothing is left to chance: one exception is a defect
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                # a parametrised test counts with its largest parametrisation, short and long
                count += len(SCALES) * max(len(LOSSLESS), len(RULES), len(PAIRS)) if node.decorator_list else 1
    # what the running loops of one rule show together is asked at the end of a run: conftest.py
    count += len(SCALES) * QUESTIONS * len({row.rules[0] for row in ROWS.values()})
    count += len(SCALES) * len(ROWS)  # what is decoded in a running loop, coin by coin: coin_by_coin.py
    assert count <= TESTS


def test_the_table_has_no_more_lines_than_its_confidence_was_split_for() -> None:
    """Kills bounds on TV that do not hold together."""
    assert len(PAIRS) + len(ROWS) <= LINES


# Their long versions have not been run: `pytest -m "stat and long" statistical_tests/test_wide.py` (and test_loop.py).
LOOPS = {f"null: {drafter} in the running loop: tokens" for drafter in ROWS}
NOT_SAMPLED_AT_LENGTH = {"null: iid candidates on full rows", "null: without replacement on full rows"} | LOOPS


def test_the_long_version_was_run_on_every_subject() -> None:
    """Kills a drafter or a rule that is added and never sampled at length; what is known not to have been is listed."""
    stated = RESULT.read_text()
    subjects = (
        *(f"null: {drafter}/{rule}: tokens" for drafter, rule in PAIRS),
        *(f"null: {rule} is lossless" for rule in LOSSLESS),
        *(f"null: {rule} on full rows" for rule in RULES),
        *LOOPS,
    )
    assert {null for null in subjects if null not in stated} == NOT_SAMPLED_AT_LENGTH
