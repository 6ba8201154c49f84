"""Goodness of fit for one table of counts: chi-square and G, with pooling chosen in advance.

Null: n independent draws from p. These tests stand beside the sequential evidence; they look once, at a fixed n.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST_EXPECTED = 5.0  # Cochran's rule, for the chi-square approximation of a pooled cell


@dataclass(frozen=True)
class Test:
    """A statistic, its degrees of freedom and its p-value."""

    statistic: float
    freedom: int
    p_value: float


def pool(p: ArrayLike, against: ArrayLike, n: int, cells: int = 16) -> NDArray[np.int64]:
    """A cell for every token, fixed by p, the alternative and n before any draw: [V] -> [V].

    Tokens of similar likelihood ratio against/p share a cell (Neyman-Pearson: nothing is lost within equal ratios), the
    cells get about equal null mass, and each expects at least LEAST_EXPECTED draws where there are so many. Tokens
    without null mass have cell -1: one draw of them decides.
    """
    p, against = np.asarray(p, dtype=float), np.asarray(against, dtype=float)
    live = np.flatnonzero(p > 0)
    order = live[np.argsort(against[live] / p[live], kind="stable")]
    share = max(1.0 / cells, LEAST_EXPECTED / n)
    cell = np.full(len(p), -1)
    index, mass = 0, 0.0
    for token in order:
        cell[token] = index
        mass += p[token]
        if mass >= share:
            index, mass = index + 1, 0.0
    if mass > 0 and mass * n < LEAST_EXPECTED and index > 0:
        cell[cell == index] = index - 1
    return cell


def pooled(values: ArrayLike, cell: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums over cells; cell -1 is left out."""
    inside = cell >= 0
    weights = np.asarray(values, dtype=float)[inside]
    return np.asarray(np.bincount(cell[inside], weights), dtype=np.float64)


def chi_square(counts: ArrayLike, p: ArrayLike) -> Test:
    """Pearson's sum of (observed - expected)^2 / expected. A draw where p = 0 has p-value 0."""
    return _divergence(counts, p, "pearson")


def g_test(counts: ArrayLike, p: ArrayLike) -> Test:
    """The log likelihood ratio 2 sum observed log(observed / expected). A draw where p = 0 has p-value 0."""
    return _divergence(counts, p, "log-likelihood")


def _divergence(counts: ArrayLike, p: ArrayLike, kind: str) -> Test:
    from scipy.stats import power_divergence  # takes a second to import, and most audits have no need of it

    counts, p = np.asarray(counts, dtype=float), np.asarray(p, dtype=float)
    if counts.shape != p.shape:
        raise ValueError(f"{counts.shape} counts cannot be compared with {p.shape} probabilities")
    live = p > 0
    freedom = int(live.sum()) - 1
    if counts[~live].sum() > 0:
        return Test(np.inf, freedom, 0.0)
    if freedom == 0:
        return Test(0.0, freedom, 1.0)
    found = power_divergence(counts[live], counts.sum() * p[live] / p[live].sum(), lambda_=kind)
    return Test(float(found.statistic), freedom, float(found.pvalue))
