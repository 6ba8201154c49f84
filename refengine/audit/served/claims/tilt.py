"""What is learned of two samplers from their answers: how much oftener one of them gives a token, after something.

A score that is learned from the pairs before is a fair bet on the next one (`evidence/e_process_of_scores.py`).
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import copysign, log
from typing import TypeAlias

from refengine.audit.served.ask import Choice
from refengine.audit.served.claims.scores import pieces

DRAWN = 256.0  # tokens for which the estimate of each sampler is drawn towards what both gave
SHOWN = 4  # tokens of a witness
Seen: TypeAlias = list[tuple[Hashable, str]]  # (what came before, token) of the tokens of an answer


@dataclass
class Tilt:
    """How much oftener each sampler gave a token, after something, than the other: log odds, beyond `least`."""

    least: float = 0.0
    counts: tuple[Counter[tuple[Hashable, str]], Counter[tuple[Hashable, str]]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    totals: tuple[Counter[Hashable], Counter[Hashable]] = field(default_factory=lambda: (Counter(), Counter()))

    def score(self, seen: Seen, rows: Sequence[Mapping[str, float]] = ()) -> float:
        """Of the tokens of an answer; where their rows are at hand (probabilities), each less what its row expects."""
        of = cache(self.of)  # a token comes in many rows
        met = {before for before, _ in seen if any(before in total for total in self.totals)}  # behind others all is 0
        told = sum(of(before, token) for before, token in seen if before in met)
        rowed = ((before, row) for (before, _), row in zip(seen, rows, strict=False) if before in met)
        return told - sum(p * of(before, token) for before, row in rowed for token, p in row.items())

    def of(self, before: Hashable, token: str) -> float:
        (first, second), (whole, other) = self.counts, self.totals
        here, there = first.get((before, token), 0), second.get((before, token), 0)
        mine, theirs = whole.get(before, 0), other.get(before, 0)
        pooled = DRAWN * (here + there + 1.0) / (mine + theirs + 2.0)
        odds = log((here + pooled) * (theirs + DRAWN) / ((there + pooled) * (mine + DRAWN)))
        return copysign(max(0.0, abs(odds) - self.least), odds)

    def keep(self, side: int, seen: Seen) -> None:
        self.counts[side].update(seen)
        self.totals[side].update(before for before, _ in seen)

    def most(self) -> list[tuple[str, int, int]]:
        """(token, on, off): the tokens that lean most, whatever came before them."""
        here, there = Counter[str](), Counter[str]()
        for total, counts in zip((here, there), self.counts, strict=True):
            for (_, token), count in counts.items():
                total[token] += count
        order = sorted({*here, *there}, key=lambda t: -abs(here[t] - there[t]) / (here[t] + there[t]) ** 0.5)
        return [(token, here[token], there[token]) for token in order[:SHOWN]]


def after(count: int, words: Sequence[str]) -> Seen:
    """Each token after so many before it. After one there are few places, each met often in a long text; after two they
    are many, but for few tokens that can come: what drafts bend at every place of a text is then learned at once,
    wherever the text has gone."""
    return [(tuple(words[max(0, i - count) : i]), word) for i, word in enumerate(words)]


def tokens_or_words(choice: Choice) -> Sequence[str]:
    return pieces(choice.text) if choice.tokens is None else choice.tokens
