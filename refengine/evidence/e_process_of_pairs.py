"""Sequential evidence that two samplers differ, where the law of neither is known.

The null: in each pair (x, y), one outcome from each sampler, the two could as well be exchanged. Given the pair as a
set, which of them came from the first sampler is then a fair coin, whatever the laws are. A bet names the chance a that
it is x, from the outcomes of each sampler so far, and pays a / (1/2). So wealth is a martingale, and reaches 1/alpha
with probability at most alpha at whatever moment one looks.

Outcomes belong to prompts, and each has several features. A defect may show at one prompt alone, a little at each, or
only in that one sampler keeps to common outcomes: a third of the wealth is on each of the three.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import log

import numpy as np
from scipy.special import logsumexp

from refengine.evidence.rows import Rows

WEIGHTS = (0.5, 2.0, 8.0)  # how many outcomes the pooled frequencies count for in the estimate of each sampler
STAKE = 0.95  # of the wealth: an estimate from little must not ruin the bettor
COMMONER = "which of the two is the more common"


@dataclass
class Feature:
    """A feature of the outcomes at one prompt, with the bets on it: one per weight."""

    first: Counter[Hashable] = field(default_factory=Counter)
    second: Counter[Hashable] = field(default_factory=Counter)
    count: int = 0  # of pairs
    log_wealth: Rows = field(default_factory=lambda: np.zeros(len(WEIGHTS)))

    def add(self, x: Hashable, y: Hashable) -> Rows:
        """One pair, x from the first sampler: the gain of each bet, which does not depend on whose outcome x is."""
        gain = np.zeros(len(WEIGHTS))
        if x != y:
            for i, weight in enumerate(WEIGHTS):
                as_it_is = self._estimate(self.first, x, weight) * self._estimate(self.second, y, weight)
                exchanged = self._estimate(self.first, y, weight) * self._estimate(self.second, x, weight)
                gain[i] = log(1 - STAKE + STAKE * 2 * as_it_is / (as_it_is + exchanged))
        self.first[x] += 1
        self.second[y] += 1
        self.count += 1
        self.log_wealth = self.log_wealth + gain
        return gain

    def log_frequency(self, outcome: Hashable) -> float:
        """Of an outcome, over both samplers so far."""
        return log((self.first[outcome] + self.second[outcome] + 0.5) / (2.0 * self.count + 1.0))

    def _estimate(self, counts: Counter[Hashable], outcome: Hashable, weight: float) -> float:
        """A sampler's chance of an outcome, drawn towards the frequency in both."""
        pooled = (self.first[outcome] + self.second[outcome] + 1.0) / (2.0 * self.count + 2.0)
        return (counts[outcome] + weight * pooled) / (self.count + weight)


@dataclass
class Pairs:
    """The e-process. Each of at most `prompts` prompts and `kinds` features has its share of the wealth from the start.
    `everywhere` is the wealth of the bets on a feature at all prompts."""

    prompts: int
    kinds: int
    features: dict[tuple[int, str], Feature] = field(default_factory=dict)  # (prompt, name)
    everywhere: dict[str, Rows] = field(default_factory=dict)
    commoner: Feature = field(default_factory=Feature)

    def add(self, prompt: int, first: Mapping[str, Hashable], second: Mapping[str, Hashable]) -> None:
        """One pair of outcomes at a prompt, each as the features that it has; a feature counts where both have it."""
        both = [name for name in first if name in second]
        found = [self.features.setdefault((prompt, name), Feature()) for name in both]
        common = [
            sum(feature.log_frequency(outcome[name]) for name, feature in zip(both, found, strict=True))
            for outcome in (first, second)
        ]
        self.commoner.add(common[0] > common[1], common[1] > common[0])
        for name, feature in zip(both, found, strict=True):
            gain = feature.add(first[name], second[name])
            self.everywhere[name] = self.everywhere.get(name, np.zeros(len(WEIGHTS))) + gain

    def log_evidence(self) -> float:
        """Features that have not come yet keep their share."""
        alone = [feature.log_wealth for feature in self.features.values()]
        families = [
            _mean(alone, self.prompts * self.kinds),
            _mean(list(self.everywhere.values()), self.kinds),
            _mean([self.commoner.log_wealth], 1),
        ]
        return float(logsumexp(families) - np.log(len(families)))

    def strongest(self) -> tuple[int, str]:
        """(prompt, name) of the feature with the most evidence; the name is `COMMONER` where that has more than any."""
        prompt, name = max(self.features, key=lambda key: float(self.features[key].log_wealth.max()))
        most = max((float(wealth.max()), kind) for kind, wealth in self.everywhere.items())
        alone = float(self.features[prompt, name].log_wealth.max())
        if float(self.commoner.log_wealth.max()) > max(most[0], alone):
            return prompt, COMMONER
        if most[0] <= alone:
            return prompt, name
        there = [key for key in self.features if key[1] == most[1]]
        return max(there, key=lambda key: float(self.features[key].log_wealth.max()))


def _mean(wealth: list[Rows], count: int) -> float:
    """The log of the mean wealth of so many features, of which these have come."""
    logs = np.concatenate([*wealth, np.zeros((count - len(wealth)) * len(WEIGHTS))])
    return float(logsumexp(logs) - np.log(len(logs)))
