"""Tests marked `coq` ask Coq, which takes a minute to compile what it is asked about: they are part of `make prove`."""

import pytest

from proofs.gate.build import absent


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("coq") and (missing := absent()):
        pytest.skip(missing)
