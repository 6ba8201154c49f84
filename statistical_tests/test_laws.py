"""The laws of `properties/helpers/laws/every.py` on many more cases, and on others in every run.

Nothing is sampled against a law here: each case is decided exactly, so one that breaks its law is a defect, and no
share of alpha is spent. A failure is printed with what makes it again, by the same version of Hypothesis:

    python -m properties.helpers.laws.every "leviathan is lossless" 6.168.1 AXicY2BgAAAABAAB
"""

import pytest
from hypothesis import HealthCheck, settings

from properties.helpers.laws.every import LAWS
from statistical_tests.budget import SCALES

pytestmark = pytest.mark.stat

MORE = 4  # times as many cases as a quick run tries


@pytest.mark.parametrize("times", SCALES)
@pytest.mark.parametrize("name", LAWS)
def test_law(name: str, times: int) -> None:
    """Kills what the quick run's cases do not reach."""
    law = LAWS[name]
    budget = settings(
        max_examples=law.quick * MORE * times,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],  # it reads the clock: a busy machine is no defect
    )
    budget(law.test())()
