"""Audits of one process share what depends on their inputs alone, and take as few calls as their tests need."""

from collections.abc import Iterator

import pytest

from properties.helpers.remembered import remembered
from refengine.audit.kernel import campaign, plan


@pytest.fixture(scope="session", autouse=True)
def tables_made_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "CaseEvidence", remembered)
        yield


@pytest.fixture
def fewer_calls_beside_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 calls have to agree with a law for 2000. G is 4 n TV^2 at least, and 50 is enough for p = 1e-9
    at a few degrees of freedom: an interception that is off by a TV of 0.2 is still distrusted, for one of 0.08."""
    monkeypatch.setattr(plan, "AGREEING_CALLS", 300)
