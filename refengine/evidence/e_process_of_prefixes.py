"""Sequential evidence that two samplers of text differ, token for token, each held to what came before it.

The null and the payment are those of e_process_of_pairs: the two answers of a pair could as well be exchanged. The bet
is the product, over every token of an answer, of the two samplers' chances of it after the very prefix it stands at;
so that small differences at many tokens add up. The chances are learned from the pairs so far, and drawn towards the
row that the token was reported with, or where there is none towards how often it came in both.

A defect is the same every time at one prefix, so prompts are few and prefixes short.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from refengine.evidence.e_process_of_pairs import MOST_ODDS, STAKE
from refengine.evidence.rows import Rows, log_sum

# How many tokens the row counts for in the estimate of each sampler. An answer of many choices is bet on at once, and
# what is learned of a seldom token from a few hundred is mostly noise.
WEIGHTS = np.array([1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0])
BETS = 2 * len(WEIGHTS)  # of each weight two: on the second sampler's own chances, and on that it follows the rows
DEEPEST = 6  # tokens of an answer that are bet on: beyond it a prefix hardly comes twice
Step: TypeAlias = tuple[str, float | None]  # (token, its chance in the row that was reported)


@dataclass
class Prefix:
    """What either sampler went on with."""

    first: Counter[str] = field(default_factory=Counter)
    second: Counter[str] = field(default_factory=Counter)
    count: list[int] = field(default_factory=lambda: [0, 0])

    def told(self, token: str, chance: float | None) -> tuple[float, ...]:
        """(how often each sampler gave the token, of how many, its chance by the row or by both)."""
        mine, theirs = self.first[token], self.second[token]
        prior = (mine + theirs + 1.0) / (sum(self.count) + 2.0) if chance is None else max(chance, 1e-6)
        return mine, self.count[0], theirs, self.count[1], prior

    def keep(self, token: str, side: int) -> None:
        (self.first, self.second)[side][token] += 1
        self.count[side] += 1


@dataclass
class Prefixes:
    """The e-process. log_wealth: of the bets, by prompt."""

    nodes: defaultdict[tuple[int | str, ...], Prefix] = field(default_factory=lambda: defaultdict(Prefix))
    log_wealth: dict[int, Rows] = field(default_factory=dict)

    def add(self, prompt: int, first: Sequence[Sequence[Step]], second: Sequence[Sequence[Step]]) -> None:
        """One pair at a prompt: equally many texts of each sampler."""
        odds = self._odds(prompt, first) - self._odds(prompt, second)
        gain = np.log(1 - STAKE + STAKE * 2 / (1 + np.exp(-odds.clip(-MOST_ODDS, MOST_ODDS))))
        self.log_wealth[prompt] = self.log_wealth.get(prompt, np.zeros(BETS)) + gain
        for side, texts in enumerate((first, second)):
            for text in texts:
                for node, token, _ in self._along(prompt, text):
                    node.keep(token, side)

    def log_evidence(self, without: int | None = None) -> float:
        """without: a prompt at which nothing was bet."""
        wealth = [wealth for prompt, wealth in self.log_wealth.items() if prompt != without]
        return float(log_sum(sum(wealth, np.zeros(BETS)), 0) - np.log(BETS))

    def _odds(self, prompt: int, texts: Sequence[Sequence[Step]]) -> Rows:
        """Of the texts being the first sampler's, by every bet."""
        steps = (step for text in texts for step in self._along(prompt, text))
        # A prefix that one sampler has not come to says nothing.
        told = [node.told(token, chance) for node, token, chance in steps if all(node.count)]
        if not told:
            return np.zeros(BETS)
        mine, count, theirs, other_count, prior = np.array(told).T[:, :, None]
        here = (mine + WEIGHTS * prior) / (count + WEIGHTS)
        there = (theirs + WEIGHTS * prior) / (other_count + WEIGHTS)
        odds: Rows = np.log([here / there, here / prior]).sum(1).T.ravel()
        return odds

    def _along(self, prompt: int, text: Sequence[Step]) -> Iterator[tuple[Prefix, str, float | None]]:
        """(the prefix it stands at, token, its chance) of every token that is bet on."""
        before: tuple[int | str, ...] = (prompt,)
        for token, chance in text[:DEEPEST]:
            yield self.nodes[before], token, chance
            before = (*before, token)
