"""The definition's own tests, in `make prove` too: what no theorem is about is computed by hand or by the other text.

Policies, drafters and their truncation, rows and what is refused of them, `Record` and `Sample`, defaults; of the
coins the generator, the counter of a site and the comparisons; and that rules round no oftener than the theorems say,
which terms over the reals do not show. The equality of rules is asked for elsewhere; of what it is said in, here.
"""

# ruff: noqa: F403
import random
from collections.abc import Callable
from fractions import Fraction

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
from properties.exact_and_engine.test_engine_rows import *
from properties.exact_and_engine.test_exact_by_hand import *
from properties.exact_and_engine.test_exact_chance import *
from properties.exact_and_engine.test_exact_drafters import *
from properties.exact_and_engine.test_exact_loop import *
from properties.exact_and_engine.test_exact_rows import *
from properties.exact_and_engine.test_odds_in_floats import *
from properties.exact_and_engine.test_policy import *
from refengine.exact.block import Drafter
from refengine.exact.chance import Record, Sample, runs
from refengine.exact.drafters import fixed, iid_tree, sampled_chain, without_replacement_tree
from refengine.exact.row import Row, point, row
from refengine.exact.rules.truncation import causal, retrospective, stopping
from refengine.exact.rules.typical import DELTA, EPSILON, INSIDE_LOG, threshold

pytestmark = pytest.mark.long

Tokens = tuple[int, ...]
# Each of them from what it asks of a history, as a number of it.
DRAFTERS: dict[str, Callable[[Callable[[Tokens], int]], Drafter]] = {
    "chain": lambda told: sampled_chain(lambda h: weighed(told(h)), 2),
    "iid": lambda told: iid_tree(lambda h: weighed(told(h)), (2, 1)),
    "distinct": lambda told: without_replacement_tree(lambda h: weighed(told(h)), (2, 1)),
    "fixed": lambda told: fixed(lambda h: ((told(h) % 2,), (-1,))),
    "causal": lambda told: causal(lambda h: weighed(told(h)), lambda h: Fraction(told(h) % 7, 7), Fraction(2, 7), 3),
    "stopping": lambda told: stopping(lambda h: weighed(told(h)), lambda h: told(h) % 3 == 0, 3),
    "retrospective": lambda told: retrospective(
        lambda h: weighed(told(h)), lambda h: Fraction(told(h) % 7, 7), [Fraction(n) for n in (6, 7, 8)], 2
    ),
}


def weighed(number: int) -> Row:
    return row([1 + number % 5, 1 + number % 3, 1])


def number_of(history: Tokens) -> int:
    """Another one for every history."""
    return sum((token + 1) * 4**place for place, token in enumerate(history))


@pytest.mark.parametrize("name", DRAFTERS)
def test_a_drafter_asks_about_the_whole_history(name: str) -> None:
    """Kills: a row, a confidence or an end that is of the draft alone: a lossless rule stays lossless, and the laws of
    Coq on record all begin at the empty history."""
    make = DRAFTERS[name]
    laws = {}
    for history in ((), (1,), (2, 0), (0, 2, 1)):
        after = make(lambda draft, history=history: number_of(history + draft))
        laws[history] = list(runs(lambda chance, history=history: make(number_of)(history, chance)))
        assert laws[history] == list(runs(lambda chance, after=after: after((), chance)))
    assert len(set(map(repr, laws.values()))) > 1


LARGER: dict[str, Callable[[Callable[[Tokens], Row]], Drafter]] = {
    "chain": lambda told: sampled_chain(told, 20),
    "iid": lambda told: iid_tree(told, (9, 2, 1)),
    "distinct": lambda told: without_replacement_tree(told, (3, 3, 2)),
}


@pytest.mark.parametrize("name", LARGER)
def test_a_wide_tree_and_a_long_chain_have_a_coin_for_each_draft(name: str) -> None:
    """Kills: a site that comes again behind some node, which no law of a small tree shows."""
    chance = Record(Sample(random.Random(0)))
    block = LARGER[name](lambda history: weighed(number_of(history)))((), chance)
    assert len(chance.sites) == len(block.tokens) >= 20


@pytest.mark.parametrize("kept", range(1, 9))
def test_a_block_is_cut_where_it_says_and_nowhere_else(kept: int) -> None:
    """Kills: a drafter that asks no more whether to go on behind some token."""
    cuts = (
        causal(lambda h: weighed(len(h)), lambda h: Fraction(len(h) < kept, 1), Fraction(1, 2), 8),
        stopping(lambda h: weighed(len(h)), lambda h: len(h) >= kept, 8),
    )
    for drafter in cuts:
        assert len(drafter((), Sample(random.Random(0))).tokens) == kept


def test_the_threshold_of_a_sure_row_is_that_of_the_published_numbers() -> None:
    """Kills: a default that is off by so little that no row of a test is decided otherwise; both texts read it here."""
    assert threshold(point(0, 2), 1.0, DELTA, INSIDE_LOG) == pytest.approx(0.3 * (1 + 1e-5), rel=1e-12)
    assert threshold(point(0, 2), EPSILON, DELTA, INSIDE_LOG) == 0.09
