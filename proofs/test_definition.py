"""The definition's own tests, in `make prove` too: what no theorem is about is computed by hand or by the other text.

Policies, drafters and their truncation, rows, `Record` and `Sample`, defaults; of the coins the generator, the counter
of a site and the comparisons. The equality of rules is asked for elsewhere; of what it is said in, here.
"""

# ruff: noqa: F403
import pytest

from properties.exact_and_engine.test_coins import (  # noqa: F401 (those that compile nothing)
    test_accept_is_strict_and_made_in_float64,
    test_branching_hands_every_decision_to_its_chance,
    test_choose_is_the_first_token_whose_sum_is_above,
    test_choose_stays_on_the_support_in_every_rounding_corner,
    test_philox_decides_by_the_top_bits_of_its_own_counter,
    test_philox_does_not_see_its_company,
    test_philox_known_answers,
    test_philox_refuses_bad_seeds_requests_and_sites,
    test_recorded_is_strict,
    test_recorded_tells_candidates_apart,
    test_scheme_is_named,
    test_shifted_gives_every_round_its_own_coins,
)
from properties.exact_and_engine.test_exact_by_hand import *
from properties.exact_and_engine.test_exact_chance import *
from properties.exact_and_engine.test_exact_drafters import *
from properties.exact_and_engine.test_exact_loop import *
from properties.exact_and_engine.test_exact_rows import *
from properties.exact_and_engine.test_policy import *

pytestmark = pytest.mark.long
