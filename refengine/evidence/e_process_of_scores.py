"""Sequential evidence that two samplers differ, from scores of what each gave.

The null: the two outcomes of a pair could as well be exchanged. The difference d of any score of them then has a
symmetric law: given |d|, its sign is a fair coin, so exp(t d) / cosh(t d) has mean 1 for any t that was named without
the sign. No law of the score is assumed, and a score may be learned from the pairs before. One pair earns at most
log 2, however strange it is.

The bets are named by how many standard deviations d is believed to be away from 0, either way. What a deviation is
follows from the pairs so far and from |d|.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from refengine.evidence.rows import Rows, log_sum

SHIFTS = np.array([-3.0, -1.0, -0.3, -0.1, 0.1, 0.3, 1.0, 3.0])  # of the difference, in its own deviations


@dataclass
class Score:
    """One score. count: pairs; total, squares: of the differences; log_wealth: of the bets, by prompt."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    log_wealth: dict[int, Rows] = field(default_factory=dict)

    def add(self, prompt: int, difference: float) -> None:
        self.count += 1
        self.total += difference
        self.squares += difference * difference
        if difference:
            exponent = SHIFTS * difference / sqrt(self.squares / self.count)
            gain = np.log(2.0) - np.logaddexp(0.0, -2.0 * exponent)
            self.log_wealth[prompt] = self.log_wealth.get(prompt, np.zeros(len(SHIFTS))) + gain

    def wealth(self, without: int | None = None) -> Rows:
        """At all prompts but one."""
        return sum((wealth for prompt, wealth in self.log_wealth.items() if prompt != without), np.zeros(len(SHIFTS)))

    @property
    def mean(self) -> float:
        return self.total / max(1, self.count)


@dataclass
class Scores:
    """The e-process: each of at most `kinds` scores has its share of the wealth from the start."""

    kinds: int
    scores: dict[str, Score] = field(default_factory=dict)

    def add(self, prompt: int, first: Mapping[str, float], second: Mapping[str, float]) -> None:
        """The scores of one pair; one that an outcome does not have is 0. Raises ValueError beyond `kinds`."""
        for name in sorted({*first, *second}):
            self.scores.setdefault(name, Score()).add(prompt, first.get(name, 0.0) - second.get(name, 0.0))
        if len(self.scores) > self.kinds:
            raise ValueError(f"{len(self.scores)} scores, of which {self.kinds} were announced")

    def log_evidence(self, without: int | None = None) -> float:
        """Scores that have not come yet keep their share. without: a prompt at which nothing was bet."""
        wealth = [score.wealth(without) for score in self.scores.values()]
        logs = np.concatenate([*wealth, np.zeros((self.kinds - len(wealth)) * len(SHIFTS))])
        return float(log_sum(logs, 0) - np.log(len(logs)))

    def strongest(self) -> str:
        """The score with the most evidence; "" before the first pair."""
        return max(self.scores, key=lambda name: float(self.scores[name].wealth().max()), default="")
