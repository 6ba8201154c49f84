"""Sequential evidence that two samplers differ, where the law of neither is known.

The null: in each pair (x, y), one or several outcomes from each sampler, the two could as well be exchanged. Given the
pair as a set, which of them came from the first sampler is then a fair coin, whatever the laws are. A bet names the
chance a that it is x, from the outcomes of each sampler so far, and pays a / (1/2). So wealth is a martingale, and
reaches 1/alpha with probability at most alpha at whatever moment one looks.

Outcomes belong to prompts, and each has several features. A defect may show at one prompt alone, a little at each, or
only in that one sampler keeps to common outcomes: a third of the wealth is on each of the three.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import TypeAlias

import numpy as np

from refengine.evidence.rows import Rows, log_sum

# How many outcomes the pooled frequencies count for in the estimate of each sampler.
WEIGHTS = np.array([0.5, 2.0, 8.0])
STAKE = 0.95  # of the wealth: an estimate from little must not ruin the bettor
MOST_ODDS = 30.0  # in nats; more is certainty
COMMONER = "which of the two is the more common"
Outcome: TypeAlias = Mapping[str, Hashable]  # its features


@dataclass
class Feature:
    """A feature of the outcomes at one prompt, with the bets on it: one per weight."""

    first: Counter[Hashable] = field(default_factory=Counter)
    second: Counter[Hashable] = field(default_factory=Counter)
    count: int = 0  # of outcomes of each
    log_wealth: Rows = field(default_factory=lambda: np.zeros(len(WEIGHTS)))

    def add(self, xs: Sequence[Hashable], ys: Sequence[Hashable]) -> Rows:
        """One pair, xs from the first sampler: the gain of each bet. All of a pair's outcomes are exchanged at once."""
        odds = self._log_odds(xs, ys).sum(0)
        gain = np.log(1 - STAKE + STAKE * 2 / (1 + np.exp(-odds.clip(-MOST_ODDS, MOST_ODDS))))
        self.first.update(xs)
        self.second.update(ys)
        self.count += len(xs)
        self.log_wealth = self.log_wealth + gain
        return np.asarray(gain)

    def _log_odds(self, xs: Sequence[Hashable], ys: Sequence[Hashable]) -> Rows:
        """Of each x being the first sampler's and its y the second's, against the other way round, by every bet."""
        number = {outcome: i for i, outcome in enumerate({*xs, *ys})}
        x, y = ([number[outcome] for outcome in side] for side in (xs, ys))
        first, second = self._estimates([*number])
        return np.asarray(np.log(first[x] * second[y] / (first[y] * second[x])))

    def log_frequency(self, outcome: Hashable) -> float:
        """Of an outcome, over both samplers so far."""
        return log((self.first[outcome] + self.second[outcome] + 0.5) / (2.0 * self.count + 1.0))

    def _estimates(self, outcomes: Sequence[Hashable]) -> Rows:
        """Each sampler's chance of each outcome by every bet, drawn towards the frequency in both."""
        counts = np.array([[side[outcome] for outcome in outcomes] for side in (self.first, self.second)])[:, :, None]
        pooled = (counts.sum(0) + 1.0) / (2.0 * self.count + 2.0)
        return np.asarray((counts + WEIGHTS * pooled) / (self.count + WEIGHTS))


@dataclass
class Pairs:
    """The e-process. Each of at most `prompts` prompts and `kinds` features has its share of the wealth from the start,
    and one share is that of the bets on a feature at all prompts."""

    prompts: int
    kinds: int
    features: dict[tuple[int, str], Feature] = field(default_factory=dict)  # (prompt, name)
    commoner: Feature = field(default_factory=Feature)
    commoner_wealth: dict[int, Rows] = field(default_factory=dict)  # by prompt

    def add(self, prompt: int, first: Sequence[Outcome], second: Sequence[Outcome]) -> None:
        """One pair at a prompt: equally many outcomes of each sampler, each as its features, which all have alike."""
        found = {name: self.features.setdefault((prompt, name), Feature()) for name in first[0]}
        told = (*first, *second)
        common = {
            name: {outcome: feature.log_frequency(outcome) for outcome in {features[name] for features in told}}
            for name, feature in found.items()
        }
        pairs = [
            tuple(sum(known[features[name]] for name, known in common.items()) for features in pair)
            for pair in zip(first, second, strict=True)
        ]
        gain = self.commoner.add([a > b for a, b in pairs], [b > a for a, b in pairs])
        self.commoner_wealth[prompt] = self.commoner_wealth.get(prompt, 0.0) + gain
        for name, feature in found.items():
            feature.add([outcome[name] for outcome in first], [outcome[name] for outcome in second])

    def log_evidence(self, without: int | None = None) -> float:
        """Features that have not come yet keep their share. without: a prompt at which nothing was bet."""
        bets = {key: feature.log_wealth for key, feature in self.features.items() if key[0] != without}
        prompts = self.prompts - (without is not None)
        common = sum((wealth for prompt, wealth in self.commoner_wealth.items() if prompt != without), np.zeros(1))
        families = [
            _mean(list(bets.values()), prompts * self.kinds),
            _mean(list(_everywhere(bets).values()), self.kinds),
            _mean([common], 1),
        ]
        return float(log_sum(np.array(families), 0) - np.log(len(families)))

    def strongest(self) -> tuple[int, str]:
        """(prompt, name) of the feature with the most evidence; the name is `COMMONER` where that has more than any."""
        bets = {key: feature.log_wealth for key, feature in self.features.items()}
        prompt, name = max(bets, key=lambda key: float(bets[key].max()))
        most = max((float(wealth.max()), kind) for kind, wealth in _everywhere(bets).items())
        alone = float(bets[prompt, name].max())
        if float(self.commoner.log_wealth.max()) > max(most[0], alone):
            return prompt, COMMONER
        if most[0] <= alone:
            return prompt, name
        return max((key for key in bets if key[1] == most[1]), key=lambda key: float(bets[key].max()))


def _everywhere(bets: Mapping[tuple[int, str], Rows]) -> dict[str, Rows]:
    """The wealth of the bets on a feature at all prompts, one after another."""
    total: dict[str, Rows] = {}
    for (_, name), wealth in bets.items():
        total[name] = total.get(name, np.zeros(len(WEIGHTS))) + wealth
    return total


def _mean(wealth: list[Rows], count: int) -> float:
    """The log of the mean wealth of so many features, of which these have come."""
    logs = np.concatenate([*wealth, np.zeros((count - len(wealth)) * len(WEIGHTS))])
    return float(log_sum(logs, 0) - np.log(len(logs)))
