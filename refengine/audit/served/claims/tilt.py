"""What is learned of two samplers from their answers: how much oftener one of them gives a token, after something.

A score that is learned from the pairs before is a fair bet on the next one (`evidence/e_process_of_scores.py`).
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
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
        met = {before for before, _ in seen if before in self.totals[0] or before in self.totals[1]}
        odds = {before: _After(self, before) for before in met}  # behind others all is 0
        told = sum(odds[before][token] for before, token in seen if before in odds)
        rowed = ((odds[before], row) for (before, _), row in zip(seen, rows, strict=False) if before in odds)
        return told - sum(p * of[token] for of, row in rowed for token, p in row.items())

    def odds(self, mine: int, theirs: int, here: int, there: int) -> float:
        """Of a token that each sampler gave so often (here, there), of all that it gave after the same."""
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


class _After(dict[str, float]):
    """The log odds of tokens after one thing: a token comes in many rows, and is worked out once."""

    def __init__(self, tilt: Tilt, before: Hashable) -> None:
        (first, second), (whole, other) = tilt.counts, tilt.totals
        self.tilt, self.before, self.first, self.second = tilt, before, first, second
        self.totals = whole.get(before, 0), other.get(before, 0)
        self.unseen = tilt.odds(*self.totals, 0, 0)

    def __missing__(self, token: str) -> float:
        key = self.before, token
        here, there = self.first.get(key, 0), self.second.get(key, 0)
        odds = self[token] = self.tilt.odds(*self.totals, here, there) if here or there else self.unseen
        return odds


def after(count: int, words: Sequence[str]) -> Seen:
    """Each token after so many before it. After one there are few places, each met often in a long text; after two they
    are many, but for few tokens that can come: what drafts bend at every place of a text is then learned at once,
    wherever the text has gone."""
    return [(tuple(words[max(0, i - count) : i]), word) for i, word in enumerate(words)]


def tokens_or_words(choice: Choice) -> Sequence[str]:
    return pieces(choice.text) if choice.tokens is None else choice.tokens
