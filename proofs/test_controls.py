"""Tests that have to fail: `conftest.py` turns what becomes of them round.

Whatever `make prove` imports may change how pytest runs a test. What is evidence is read, and what it is about is not:
so where no test of this process can fail, these pass, and that is told.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.text, pytest.mark.control]


def test_an_assertion_fails() -> None:
    """Kills: a test function that is not called."""
    assert "false" == ""


def test_an_error_that_nobody_raised_is_missed() -> None:
    """Kills: a `pytest.raises` that is content."""
    with pytest.raises(ValueError, match="never"):
        pass


@settings(database=None)
@given(st.integers())
def test_a_number_is_found(number: int) -> None:
    """Kills: a Hypothesis that draws nothing."""
    assert abs(number) < 2


@pytest.mark.parametrize("number", [1, 2])
def test_each_case_is_asked(number: int) -> None:
    """Kills: a table of cases that is emptied."""
    assert number < 1
