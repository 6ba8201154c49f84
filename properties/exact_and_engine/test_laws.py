"""Every law on cases that Hypothesis draws and shrinks: the same few in every run. `make stat` tries many others."""

import pytest
from hypothesis import HealthCheck, settings

from properties.helpers.laws.every import LAWS

pytestmark = pytest.mark.on_record


@pytest.mark.parametrize("name", LAWS)
def test_law(name: str) -> None:
    """Kills a rule, a loop, a policy or a drafter that breaks its law on a case that nobody thought of."""
    law = LAWS[name]
    slow = [HealthCheck.too_slow]  # it reads the clock: a busy machine is no defect
    settings(max_examples=law.quick, deadline=None, derandomize=True, print_blob=True, suppress_health_check=slow)(
        law.test()
    )()
