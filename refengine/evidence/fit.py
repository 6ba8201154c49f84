"""Goodness of fit for one table of counts: chi-square, G, the exact multinomial test, and pooling chosen in advance.

Null: n independent draws from p. These stand beside the sequential evidence; they look once, at a fixed n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

LEAST_EXPECTED = 5.0  # Cochran's rule, for the chi-square approximation of a pooled cell


@dataclass(frozen=True)
class Test:
    """A statistic, its degrees of freedom (0 for an exact test) and its p-value."""

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
    observed, expected, impossible = _tables(counts, p)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return _against_chi2(statistic, len(expected) - 1, impossible)


def g_test(counts: ArrayLike, p: ArrayLike) -> Test:
    """The log likelihood ratio 2 sum observed log(observed / expected)."""
    observed, expected, impossible = _tables(counts, p)
    terms = np.where(observed > 0, observed * np.log(np.where(observed > 0, observed, 1.0) / expected), 0.0)
    return _against_chi2(float(2.0 * terms.sum()), len(expected) - 1, impossible)


def exact_multinomial(counts: Sequence[int], p: Sequence[float]) -> Test:
    """The probability of all tables that are at most as likely as the one seen; by enumeration, for small tables."""
    n = sum(counts)
    log_p = [np.log(x) if x > 0 else -np.inf for x in p]
    seen = _log_probability(counts, log_p)
    if np.isneginf(seen):
        return Test(np.inf, 0, 0.0)
    # Tables as likely as the seen one must count as such although their sums round differently.
    bar = seen + 1e-9
    tail = sum(np.exp(x) for x in (_log_probability(t, log_p) for t in _tables_of(n, len(counts))) if x <= bar)
    return Test(-2.0 * seen, 0, min(1.0, float(tail)))


def _tables(counts: ArrayLike, p: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    counts, p = np.asarray(counts, dtype=float), np.asarray(p, dtype=float)
    if counts.shape != p.shape:
        raise ValueError(f"{counts.shape} counts cannot be held to {p.shape} probabilities")
    live = p > 0
    return counts[live], counts.sum() * p[live] / p[live].sum(), bool(counts[~live].sum() > 0)


def _against_chi2(statistic: float, freedom: int, impossible: bool) -> Test:
    if impossible:
        return Test(np.inf, freedom, 0.0)
    return Test(statistic, freedom, float(chi2.sf(statistic, freedom)) if freedom else 1.0)


def _tables_of(n: int, cells: int) -> "list[tuple[int, ...]]":
    if cells == 1:
        return [(n,)]
    return [(first, *rest) for first in range(n + 1) for rest in _tables_of(n - first, cells - 1)]


def _log_probability(counts: Sequence[int], log_p: Sequence[float]) -> float:
    terms = [k * lp - lgamma(k + 1) for k, lp in zip(counts, log_p, strict=True) if k]
    return lgamma(sum(counts) + 1) + sum(terms)
