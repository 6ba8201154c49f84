"""Bets that learn: a Dirichlet-multinomial on few cells, per group of sites and state of the history.

The wealth of such a bet after counts n is DM(n; c pi) / prod pi^n, in closed form: the order of the draws does not
matter, so the wealth is computed from counts at every look, and it is a martingale at every single draw. A prior
centred on pi with concentration c costs little while the null holds; a few c are mixed because the size of the effect
is unknown.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from refengine.evidence.rows import Rows, log_sum

CONCENTRATIONS = np.array([3.0, 30.0, 300.0, 3_000.0, 30_000.0])
STAKE = 0.1  # of the wealth of a feature, which one input may lose


class Learner:
    """One feature of one input: groups = classes of sites x states of the feature.

    p      [S, V]  the null rows of the sites
    cell   [S, V]  the cell of every token, equal within a class
    group  [S]     the class of every site: sites of one class have equal null rows and cells
    states         how many states the feature has
    ball           the null is a ball of this total variation around p
    copies         independent audits that are counted side by side
    """

    def __init__(
        self, p: Rows, cell: NDArray[np.int64], group: NDArray[np.int64], states: int, ball: float, copies: int
    ) -> None:
        self.cell, self.group, self.states = cell, group, states
        width = int(cell.max()) + 1
        mass = np.zeros((int(group.max()) + 1, width))
        for site in range(len(p)):  # sites of a class are equal: the last one gives its mass
            mass[group[site]] = np.bincount(cell[site], p[site], width)
        self.mass = np.repeat(mass, states, axis=0)
        self.counts = np.zeros((copies, *self.mass.shape))
        # sup over the ball of a cell's mass is pi + ball, so the ratio against any null in it is at least this
        self.log_null = np.log(np.where(self.mass > 0, self.mass + ball, 1.0))

    def add(
        self, copy: NDArray[np.int64], site: NDArray[np.int64], token: NDArray[np.int64], state: NDArray[np.int64]
    ) -> None:
        """Count draws; `state` is -1 where the feature has no state."""
        known = state >= 0
        copy, site, token, state = copy[known], site[known], token[known], state[known]
        _, groups, width = self.counts.shape
        row = copy * groups + self.group[site] * self.states + state
        index = row * width + self.cell[site, token]
        self.counts += np.bincount(index, minlength=self.counts.size).reshape(self.counts.shape)

    def log_wealth(self) -> tuple[Rows, Rows]:
        """Two bets on all groups, [copies] each. The first stakes a part of its wealth on every group, so that many
        weak groups show, and risks little: it is multiplied over cases. The second believes in one group, any of them.
        """
        groups = np.zeros(self.counts.shape[:2])
        visited = self.counts.sum((0, 2)) > 0
        if visited.any():
            groups[:, visited] = _log_ratio(self.counts[:, visited], self.mass[visited], self.log_null[visited])
        # Parts that are fixed beforehand: one that depends on the counts would be chosen with hindsight.
        stakes = (0.5, 1.0 / (1.0 + groups.shape[1]))
        parts = [np.logaddexp(np.log1p(-part), np.log(part) + groups).sum(-1) for part in stakes]
        everywhere = np.logaddexp(np.log1p(-STAKE), np.log(STAKE / 2) + log_sum(np.array(parts), 0))
        return np.asarray(everywhere), np.asarray(log_sum(groups, 1) - np.log(groups.shape[1]))

    def strongest(self) -> tuple[int, NDArray[np.bool_]]:
        """The group with the most evidence, and the cells of every group that come too often, [groups, cells]: the sets
        that a fresh sample is counted in."""
        evidence = _log_ratio(self.counts, self.mass, self.log_null)[0]
        counts = self.counts[0]
        return int(evidence.argmax()), counts > counts.sum(-1, keepdims=True) * self.mass

    def share(self, group: int, often: NDArray[np.bool_]) -> tuple[int, int, float]:
        """(hits, draws, null mass) of the cells of a group."""
        counts, often = self.counts[0, group], often[group]
        return int(counts[often].sum()), int(counts.sum()), float(self.mass[group][often].sum())

    def shares(self, often: NDArray[np.bool_]) -> tuple[int, int, float]:
        """The same over all groups, each with its own cells; their null mass is weighed by the draws of each group."""
        counts = self.counts[0]
        draws = max(float(counts.sum()), 1.0)
        due = float((counts.sum(-1) * (self.mass * often).sum(-1)).sum())
        return int(counts[often].sum()), int(draws), due / draws


def _log_ratio(counts: Rows, mass: Rows, log_null: Rows) -> Rows:
    """log of the mean over concentrations of DM(counts) / prod null^counts: [copies, groups]. Most counts are zero and
    add nothing."""
    copy, group, cell = np.nonzero((counts > 0) & (mass > 0))
    seen, share, total = counts[copy, group, cell], mass[group, cell], counts.sum(-1)
    where, shape = copy * counts.shape[1] + group, counts.shape[:2]
    log_dm = []
    for concentration in CONCENTRATIONS:
        terms = gammaln(concentration * share + seen) - gammaln(concentration * share)
        own = np.bincount(where, terms, total.size).reshape(shape)
        log_dm.append(gammaln(concentration) - gammaln(concentration + total) + own)
    log_mean = log_sum(np.array(log_dm), 0) - np.log(len(CONCENTRATIONS))
    return np.asarray(log_mean - np.bincount(where, seen * log_null[group, cell], total.size).reshape(shape))
