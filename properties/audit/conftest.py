"""Audits of one process share what depends on their inputs alone."""

from collections.abc import Iterator

import pytest

from properties.helpers.remembered import remembered
from refengine.audit.kernel import campaign


@pytest.fixture(scope="session", autouse=True)
def tables_made_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "CaseEvidence", remembered)
        yield
