"""Fixed-sample tests beside the e-process: they say what they claim, checked by simulation with fixed seeds."""

import numpy as np
import pytest

from refengine.evidence.distance import mean_tv_at_least, tv_at_least
from refengine.evidence.fit import g_test, pool, pooled
from refengine.evidence.learned_bets import Learner
from refengine.evidence.power import detectable_tv

P = np.array([0.5, 0.3, 0.2])


def test_an_impossible_token_has_p_value_zero() -> None:
    """Kills cells with p = 0 dropped, and with them the draws that fell there; and expected counts of another total."""
    assert g_test([5, 5, 1], [0.5, 0.5, 0.0]) == 0.0
    assert g_test([5, 5, 0], [2.0, 2.0, 0.0]) == 1.0
    assert g_test([5, 0], [1.0, 0.0]) == 1.0


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
    """Kills a stated power that is not there. 2000 tables at power 0.99: below 0.97 has probability 1e-12."""
    n, cells, alpha = 4000, 4, 1e-3
    d = detectable_tv(n, cells, alpha)
    p = np.full(cells, 1 / cells)
    law = p + np.array([1, -1, 1, -1]) * 2 * d / cells
    tables = np.random.default_rng(3).multinomial(n, law, size=2000)
    rejected = np.mean([g_test(t, p, "pearson") < alpha for t in tables])
    assert rejected > 0.97


def test_lower_bounds_are_below() -> None:
    """Kills a bound that is too high. 2000 bounds at 0.9: fewer than 1740 has probability 1e-6 at worst."""
    law = np.array([0.45, 0.35, 0.2])
    truth = np.abs(law - P).sum() / 2
    tables = np.random.default_rng(4).multinomial(500, law, size=2000)
    bounds = [tv_at_least(int(t[1]), 500, 0.3, 0.9) for t in tables]
    assert sum(bound <= truth for bound in bounds) >= 1740


def test_a_mean_over_places_shows_where_each_place_is_met_too_rarely() -> None:
    """Kills a finding that says TV 0 beside evidence of many nats, because the one place it looks at was met thirty
    times; or a bound that is not one where nothing is off."""
    places = 20
    p = np.full((places, 2), 0.5)
    learner = Learner(p, np.tile(np.arange(2), (places, 1)), np.arange(places), 1, 0.0, 1)
    learner.counts[0] = [[21, 9], [9, 21]] * (places // 2)
    group, often = learner.strongest()
    assert tv_at_least(*learner.share(group, often), 0.999) == 0.0
    assert 0.1 < mean_tv_at_least(*learner.shares(often), 0.999) < 0.2
    learner.counts[0] = 15
    assert mean_tv_at_least(*learner.shares(often), 0.999) == 0.0
