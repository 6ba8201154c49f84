"""The tests of `counts.py` on counts whose law is known: errors are what they say, and so is what is seen."""

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import kstest

from refengine.evidence.power import detectable_tv
from statistical_tests.counts import bet, chi_square, p_of, tv_at_most

pytestmark = pytest.mark.stat

SAMPLES = 400
ONE = defaultdict(lambda: 1.0)  # what a TV of 1 moves the mean of a score from 0 to 1 by
LESS = 1e-6  # a correct `counts.py` fails a test here with about this probability; the seeds are fixed


def texts(source: np.random.Generator, rows: dict[tuple[int, ...], np.ndarray], n: int) -> dict:
    """Counts after each text of up to three tokens of n requests: deeper places are visited as the others fell out."""
    seen, visits = {}, {(): n}
    for place in sorted(rows, key=len):
        seen[place] = source.multinomial(visits[place], rows[place]).astype(float)
        visits |= {(*place, x): int(count) for x, count in enumerate(seen[place])}
    return seen


def rows_of(source: np.random.Generator) -> dict[tuple[int, ...], np.ndarray]:
    """Rows of three tokens, some next to certain, after each text of up to two."""
    places = [(), *((x,) for x in range(3)), *((x, y) for x in range(3) for y in range(3))]
    return {place: source.dirichlet([0.3, 1.0, 3.0]) for place in places}


def tilted(row: np.ndarray, by: float) -> np.ndarray:
    """The row with `by` of the mass of its heaviest token on its lightest, as far as there is so much."""
    out = row.copy()
    out[row.argmax()], out[row.argmin()] = out.max() - min(by, out.max()), out.min() + min(by, out.max())
    return out


def test_p_is_uniform_for_few_draws_and_rare_tokens() -> None:
    """Kills a chi-square test that is one in the limit only: its p at a few hundred draws, of rows like 0.001."""
    source = np.random.default_rng(1)
    rows = rows_of(source)
    found = [p_of(chi_square(texts(source, rows, 300), rows, seed)) for seed in range(SAMPLES)]
    assert kstest(found, "uniform").pvalue > LESS


def test_the_wealth_of_a_bet_is_a_martingale() -> None:
    """Kills a bet that a correct loop wins: the mean of 1 / p is 1 at most."""
    source = np.random.default_rng(2)
    rows = rows_of(source)
    scores = {place: np.array([0.0, 1.0, 0.0]) for place in rows}
    found = [bet(texts(source, rows, 300), rows, scores, ONE).p for _ in range(SAMPLES)]
    assert min(found) > 1e-4
    assert np.mean(np.array(found) < 0.05) <= 0.05


@pytest.mark.parametrize("alpha", [1e-4, 1e-9])
def test_a_bet_sees_what_it_says(alpha: float) -> None:
    """Kills a power that is not there: a tilt of the stated size is seen 99 times of 100."""
    source = np.random.default_rng(3)
    rows = {place: np.maximum(row, 0.05) / np.maximum(row, 0.05).sum() for place, row in rows_of(source).items()}
    scores = {place: (np.arange(3) == row.argmax()).astype(float) for place, row in rows.items()}
    size = bet(texts(source, rows, 50_000), rows, scores, ONE).sees(alpha)
    off = {place: tilted(row, size) for place, row in rows.items()}
    found = [bet(texts(source, off, 50_000), rows, scores, ONE).p < alpha for _ in range(SAMPLES)]
    assert np.mean(found) > 0.97
    assert size < 0.03


def test_the_chi_square_sees_what_it_says() -> None:
    """Kills the same of the chi-square test."""
    source = np.random.default_rng(4)
    rows = {place: np.array([0.3, 0.3, 0.4]) for place in rows_of(source)}
    n = sum(counts.sum() for counts in texts(source, rows, 50_000).values())
    freedom = chi_square(texts(source, rows, 50_000), rows, 0)[1]
    off = {place: tilted(row, detectable_tv(int(n), freedom + 1, 1e-9)) for place, row in rows.items()}
    found = [p_of(chi_square(texts(source, off, 50_000), rows, seed)) < 1e-9 for seed in range(SAMPLES)]
    assert np.mean(found) > 0.97


@pytest.mark.parametrize("by", [0.0, 0.02])
def test_the_bound_on_tv_holds(by: float) -> None:
    """Kills a bound that is an estimate: at a risk of 0.05 it lies above the true TV in nearly every sample."""
    source = np.random.default_rng(5)
    rows = {place: np.maximum(row, 0.05) / np.maximum(row, 0.05).sum() for place, row in rows_of(source).items()}
    off = {place: tilted(row, by) for place, row in rows.items()}
    bounds = [tv_at_most(texts(source, off, 2_000), rows, 6_000, 0.05) for _ in range(SAMPLES)]
    true = max(np.abs(off[place] - rows[place]).sum() / 2 for place in rows)
    assert np.mean(np.array(bounds) < true) <= 0.05
    assert max(bounds) < true + 0.1
