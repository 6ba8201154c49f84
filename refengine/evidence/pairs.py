"""Sequential evidence that two samplers differ, where the law of neither is known.

The null: in each pair (x, y), one outcome from each sampler, the two could as well be exchanged. Given the pair as a
set, which of them came from the first sampler is then a fair coin, whatever the laws are. A bet names the chance a that
it is x, from what each sampler emitted so far, and pays a / (1/2). So wealth is a martingale, and reaches 1/alpha with
probability at most alpha at whatever moment one looks.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

WEIGHTS = (0.5, 2.0, 8.0)  # how many outcomes the pooled frequencies count for in the estimate of each sampler
STAKE = 0.95  # of the wealth: an estimate from little must not ruin the bettor


@dataclass
class Feature:
    """What is looked at of an outcome, with the bets on it: one per weight."""

    first: Counter[Hashable] = field(default_factory=Counter)
    second: Counter[Hashable] = field(default_factory=Counter)
    log_wealth: np.ndarray[tuple[int], np.dtype[np.float64]] = field(default_factory=lambda: np.zeros(len(WEIGHTS)))

    def add(self, x: Hashable, y: Hashable) -> None:
        """One pair, x from the first sampler. The bet is placed before it is told which is which."""
        if x != y:
            for i, weight in enumerate(WEIGHTS):
                as_it_is = self._estimate(self.first, x, weight) * self._estimate(self.second, y, weight)
                exchanged = self._estimate(self.first, y, weight) * self._estimate(self.second, x, weight)
                self.log_wealth[i] += np.log(1 - STAKE + STAKE * 2 * as_it_is / (as_it_is + exchanged))
        self.first[x] += 1
        self.second[y] += 1

    def _estimate(self, counts: Counter[Hashable], outcome: Hashable, weight: float) -> float:
        """A sampler's chance of an outcome, drawn towards the frequency in both."""
        pooled = (self.first[outcome] + self.second[outcome] + 1.0) / (2.0 * self.first.total() + 2.0)
        return float((counts[outcome] + weight * pooled) / (counts.total() + weight))


@dataclass
class Pairs:
    """The e-process over named features. Wealth is shared between them: each may show another defect."""

    features: dict[str, Feature] = field(default_factory=dict)
    most: int = 64  # features; what comes later is not looked at

    def add(self, first: Mapping[str, Hashable], second: Mapping[str, Hashable]) -> None:
        """One pair of outcomes, each as the features that it has; a feature counts where both have it."""
        for name in first.keys() & second.keys():
            if name in self.features or len(self.features) < self.most:
                self.features.setdefault(name, Feature()).add(first[name], second[name])

    def log_evidence(self) -> float:
        """Every feature that may ever come has its share from the start: 1 / most."""
        wealth = [w for feature in self.features.values() for w in feature.log_wealth]
        idle = np.log(1.0 - len(self.features) / self.most) if len(self.features) < self.most else -np.inf
        return float(logsumexp([*(np.array(wealth) - np.log(self.most * len(WEIGHTS))), idle]))

    def strongest(self) -> str:
        """The feature that told."""
        return max(self.features, key=lambda name: float(self.features[name].log_wealth.max()))
