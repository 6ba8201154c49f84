"""Tests of counts whose error is exact at any alpha and any number of draws, however the draws depend on each other.

The tokens of a text depend on each other, but the token after a given text is a draw from one row. Count what came
after each text, take the texts in order of length, and each count is a multinomial given all before it. Two
tests use this, and neither has a chi-square or normal approximation in it, which at alpha = 1e-10 would be the error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom, chi2, norm

LEAST_DRAWS = 30  # of a place, to be a part of a chi-square: those with fewer would add freedom and show nothing
Floats = NDArray[np.float64]
Places = Mapping[object, Floats]  # counts of what came at a place, or its probabilities: [K] each


def chi_square(seen: Places, rows: Places, seed: int) -> tuple[float, int]:
    """The statistic of all places together, and its freedom; infinite where something of probability 0 was seen.

    Null: at each place, given the others before it, so many draws from its row. A multinomial is a chain of binomials,
    each outcome against those after it. A binomial count k becomes a number between P(< k) and P(<= k), at an even
    place, which is exactly uniform; what has that normal distribution function is exactly normal; the squares add up.
    """
    wins, draws, shares = list[float](), list[float](), list[float]()
    for place, counts in seen.items():
        live = rows[place] > 0
        if counts[~live].sum():
            return np.inf, 1
        if counts.sum() >= LEAST_DRAWS:
            k, p = counts[live], rows[place][live]
            left, mass = k[::-1].cumsum()[::-1], p[::-1].cumsum()[::-1]
            for some in np.flatnonzero(left[:-1]):
                wins.append(k[some])
                draws.append(left[some])
                shares.append(min(p[some] / mass[some], 1.0))
    z = normals(np.array(wins), np.array(draws), np.array(shares), seed)
    return float((z**2).sum()), len(z)


def normals(wins: Floats, draws: Floats, shares: Floats, seed: int) -> Floats:
    """Binomial counts as independent standard normals, exactly so under the null, `seed` choosing the even places."""
    even = np.random.default_rng(seed).random(len(wins))
    at = binom.pmf(wins, draws, shares)
    below, above = binom.cdf(wins - 1, draws, shares), binom.sf(wins, draws, shares)
    low, high = below + even * at, above + (1 - even) * at
    return np.where(low < high, norm.ppf(np.maximum(low, 1e-300)), norm.isf(np.maximum(high, 1e-300)))


def p_of(found: tuple[float, int]) -> float:
    """The p-value of a statistic of `chi_square`, or of several independent ones added up."""
    statistic, freedom = found
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0 * (statistic == 0)


# Stakes of a bet on the mean of a score, from those that pay at a thousand draws to those that pay at ten million.
STAKES = np.array([sign * 2.0**-j for j in range(1, 11) for sign in (1, -1)])


@dataclass(frozen=True)
class Bet:
    """A bet on the mean of a score, and how much it sees.

    logs      the log wealth of each of STAKES. It starts at 0, and under the null the mean wealth is 1 whatever the
              draws depend on: exp(stake * score) over its expectation, multiplied over all draws
    moves     by how much a total variation of 1 in the draws that the score is about moves the sum of all scores
    variance  of that sum
    """

    logs: list[float]
    moves: float
    variance: float

    @property
    def p(self) -> float:
        """1 / the mean wealth: below alpha with probability at most alpha (Markov; at any time, by Ville)."""
        return float(min(1.0, np.exp(np.log(len(STAKES)) - logsumexp(self.logs))))

    def sees(self, alpha: float) -> float:
        """The total variation, towards high scores or low ones, with which the bet is won with probability 0.99.

        The best stake on a TV of d gains g = (d moves)^2 / (2 variance) nats in the mean, with variance 2 g, and must
        gain log(STAKES / alpha): one of the stakes is within a factor of sqrt(2) of it, and gains 8/9.
        """
        root = (2.33 + np.sqrt(2.33**2 + 2 * np.log(len(STAKES) / alpha))) / np.sqrt(2)
        return float(root * np.sqrt(9 / 8 * 2 * self.variance) / self.moves) if self.moves else float("inf")


def bet(seen: Places, rows: Places, scores: Places, moves: Mapping[object, float]) -> Bet:
    """A bet on the mean of a score. moves: at each place, what a total variation of 1 moves it by."""
    logs, moved, variance = np.zeros(len(STAKES)), 0.0, 0.0
    for place, counts in seen.items():
        row, score = rows[place], scores[place]
        live = row > 0
        if np.ptp(score[live]) > 0:
            n, tilted = counts.sum(), STAKES[:, None] * score
            logs += tilted @ counts - n * logsumexp(tilted[:, live] + np.log(row[live]), axis=1)
            moved += n * moves[place]
            variance += n * (row @ score**2 - (row @ score) ** 2)
    return Bet(logs.tolist(), float(moved), float(variance))


def bets_together(every: Sequence[Bet]) -> Bet:
    """One bet on one question with the wealth of independent ones multiplied."""
    return Bet(
        np.sum([x.logs for x in every], axis=0).tolist(), sum(x.moves for x in every), sum(x.variance for x in every)
    )


def tv_at_most(seen: Places, rows: Places, planned: float, risk: float) -> float:
    """What the mean TV over places, weighted by their draws, is at most, but with probability `risk`.

    It is at most the mean TV of what was seen, plus that of what was seen to the rows it was drawn from. Of n draws
    among K the latter is n TV <= sqrt(n (K - 1)) / 2 in the mean (Cauchy), and since one draw moves n TV by at most 1,
    the excess of all places has E exp(stake excess) <= exp(stake^2 N / 8) (McDiarmid): the stake is best at `planned`
    draws, and right at any number. All that a row gives no mass is one outcome more.
    """
    distance = noise = total = 0.0
    for place, counts in seen.items():
        n = counts.sum()
        distance += np.abs(counts - n * rows[place]).sum() / 2
        noise += np.sqrt(n * (rows[place] > 0).sum()) / 2
        total += n
    stake = np.sqrt(8 * np.log(1 / risk) / planned)
    excess = stake * total / 8 + np.log(1 / risk) / stake
    return float(min(1.0, (distance + noise + excess) / total))


def summed(every: Sequence[tuple[float, int]]) -> tuple[float, int]:
    """Independent chi-squares, added."""
    return sum(statistic for statistic, _ in every), sum(freedom for _, freedom in every)
