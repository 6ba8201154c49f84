"""Fixed-sample tests beside the e-process: they say what they claim, checked by simulation with fixed seeds."""

import numpy as np
import pytest
from scipy.stats import chisquare

from refengine.evidence.bets.learned_bets import Learner
from refengine.evidence.distance import mean_tv_at_least, tv_at_least
from refengine.evidence.fit import chi_square, g_test, pool, pooled
from refengine.evidence.power import detectable_tv

P = np.array([0.5, 0.3, 0.2])


def test_chi_square_is_scipys_and_g_is_near() -> None:
    """Kills a wrong number of degrees of freedom, expected counts from the wrong total."""
    counts = [480, 310, 210]
    assert chi_square(counts, P).p_value == pytest.approx(chisquare(counts, 1000 * P).pvalue, rel=1e-12)
    assert g_test(counts, P).p_value == pytest.approx(chi_square(counts, P).p_value, rel=0.05)


def test_an_impossible_token_has_p_value_zero() -> None:
    """Kills cells with p = 0 dropped, and with them the draws that fell there."""
    assert chi_square([5, 5, 1], [0.5, 0.5, 0.0]).p_value == 0.0
    assert g_test([5, 5, 1], [0.5, 0.5, 0.0]).p_value == 0.0


def test_pooling_keeps_the_likelihood_ratio_apart() -> None:
    """Kills pooling by count alone merges what the alternative raises with what it lowers."""
    p = np.full(64, 1 / 64)
    against = np.where(np.arange(64) % 2, 1.5, 0.5) / 64
    cell = pool(p, against, n=100_000, cells=8)
    for c in range(cell.max() + 1):
        assert len(set(against[cell == c])) == 1
    assert pooled(p, cell).sum() == pytest.approx(1.0)
    assert (pooled(p, pool(p, against, n=200)) * 200 >= 5).all()


def test_power_and_detectable_tv_hold_in_simulation() -> None:
    """Kills a stated power that is not there. 2000 tables at power 0.99: below 0.97 or above 0.999
    has probability 1e-5."""
    n, cells, alpha = 4000, 4, 1e-3
    d = detectable_tv(n, cells, alpha)
    p = np.full(cells, 1 / cells)
    law = p + np.array([1, -1, 1, -1]) * 2 * d / cells
    tables = np.random.default_rng(3).multinomial(n, law, size=2000)
    rejected = np.mean([chi_square(t, p).p_value < alpha for t in tables])
    assert 0.97 < rejected < 0.999


def test_a_lower_bound_is_one() -> None:
    """Kills a bound that is too large. 2000 bounds at 0.9: fewer than 1740 that hold has probability 1e-6 at worst."""
    law = np.array([0.45, 0.35, 0.2])
    truth = np.abs(law - P).sum() / 2
    tables = np.random.default_rng(4).multinomial(500, law, size=2000)
    bounds = [tv_at_least(int(t[1]), 500, 0.3, 0.9) for t in tables]
    assert sum(bound <= truth for bound in bounds) >= 1740
    assert max(bounds) > 0.05
    assert tv_at_least(0, 0, 0.0, 0.9) == tv_at_least(0, 5, 0.0, 0.9) == 0.0


def test_a_mean_over_sites_shows_where_each_site_is_visited_too_rarely() -> None:
    """Kills a finding that says TV 0 beside evidence of many nats, because the one site that it looks at was visited
    thirty times; or a bound that is not one where nothing is off."""
    sites = 20
    p = np.full((sites, 2), 0.5)
    learner = Learner(p, np.tile(np.arange(2), (sites, 1)), np.arange(sites), 1, 0.0, 1)
    learner.counts[0] = [[21, 9], [9, 21]] * (sites // 2)
    group, often = learner.strongest()
    assert tv_at_least(*learner.share(group, often), 0.999) == 0.0
    assert 0.1 < mean_tv_at_least(*learner.shares(often), 0.999) < 0.2
    learner.counts[0] = 15
    assert mean_tv_at_least(*learner.shares(often), 0.999) == 0.0
