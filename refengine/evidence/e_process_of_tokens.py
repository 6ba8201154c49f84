"""Sequential evidence that tokens do not follow rows that are known: one sample, each token against its own row.

Three kinds of bets share the wealth. Laws that are named beforehand: a parameter ignored, a penalty that counts more
than it should. Mass moved onto or off likely tokens, at some places of an answer. And what is learned at each prefix.
All are products over tokens; each factor has mean at most 1 under every law within a total variation of `ball` of the
row: a factor R is divided by 1 + ball (max R - min R). A token that is outside of every such law is no bet, but a
violation; the caller knows what rounding can bring about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refengine.evidence.rows import Rows, log_sum

BALL = 1e-3  # total variation of a row: float32 against double precision moves it by less than 1e-5
TILTS = np.array([-0.7, -0.2, -0.05, 0.05, 0.2, 0.7])
SHARES = np.array([0.1, 0.5, 0.9])  # of the mass that follows the named law
WEIGHTS = np.array([4.0, 16.0, 64.0])  # how many tokens the row counts for where it is learned
MOST = 20.0  # times its row that a bet gives to a token
FEW = 5  # tokens that are the likely ones of a row
KINDS = ("surprising tokens", "the likeliest token", "unlikely tokens")


@dataclass
class TokenEvidence:
    """The e-process. places: names of the places of an answer, which are told apart; laws: the names of the laws."""

    laws: tuple[str, ...]
    places: tuple[str, ...]
    ball: float = BALL
    tokens: int = 0
    named: dict[str, Rows] = field(default_factory=dict)  # a law -> log wealth by SHARES
    tilted: dict[tuple[str, str], Rows] = field(default_factory=dict)  # (kind, place) -> by TILTS
    learned: Rows = field(default_factory=lambda: np.zeros(len(WEIGHTS)))
    counts: dict[tuple[int, ...], Rows] = field(default_factory=dict)

    def add(
        self, prefix: tuple[int, ...], places: Sequence[str], token: int, p: Rows, laws: Mapping[str, Rows]
    ) -> None:
        """One token after a prefix. p: its row [V], positive at the token; laws: rows of named laws beside it."""
        self.tokens += 1
        for name, law in laws.items():
            ratio = 1 - SHARES[:, None] + SHARES[:, None] * law / np.maximum(p, 1e-12)
            self._gain(self.named, name, self._factor(ratio, p, token))
        for kind, score in zip(KINDS, _scores(p), strict=True):
            ratio = np.exp(TILTS[:, None] * score)
            factor = self._factor(ratio / (ratio * p).sum(-1, keepdims=True), p, token)
            for place in places:
                self._gain(self.tilted, (kind, place), factor)
        seen = self.counts.setdefault(prefix, np.zeros(len(p)))
        law = (seen + WEIGHTS[:, None] * p) / (seen.sum() + WEIGHTS[:, None])
        self.learned = self.learned + self._factor(law / np.maximum(p, 1e-12), p, token)
        seen[token] += 1

    def log_evidence(self) -> float:
        """What has not come yet keeps its share."""
        kinds = [
            _mean(list(self.named.values()), max(1, len(self.laws)), len(SHARES)),
            _mean(list(self.tilted.values()), len(KINDS) * len(self.places), len(TILTS)),
            _mean([self.learned], 1, len(WEIGHTS)),
        ]
        return float(log_sum(np.array(kinds), 0)) - float(np.log(len(kinds)))

    def looks_like(self) -> str:
        """The bet with the most wealth, in words."""
        named = {name: float(wealth.max()) for name, wealth in self.named.items()}
        tilted = {key: float(wealth.max()) for key, wealth in self.tilted.items()}
        law = max(named, key=lambda name: named[name], default="")
        kind, place = max(tilted, key=lambda key: tilted[key])
        if law and named[law] > max(0.0, tilted[kind, place]):
            return law
        way = "often" if TILTS[int(self.tilted[kind, place].argmax())] > 0 else "seldom"
        return f"{kind} come too {way}, at {place}"

    def _factor(self, ratio: Rows, p: Rows, token: int) -> Rows:
        """The log of the factors of some bets [n, V] for the token that came, fair in the whole ball."""
        clipped = np.minimum(ratio, MOST)
        clipped = clipped / np.maximum(1.0, (clipped * p).sum(-1, keepdims=True))
        live = clipped[:, p > 0]
        spread = live.max(-1) - live.min(-1)
        return np.asarray(np.log(np.maximum(clipped[:, token], 1e-9) / (1 + self.ball * spread)))

    @staticmethod
    def _gain(wealth: dict[Any, Rows], name: Any, gain: Rows) -> None:
        wealth[name] = wealth[name] + gain if name in wealth else gain


def _scores(p: Rows) -> tuple[Rows, Rows, Rows]:
    """Of every token of a row, by KINDS."""
    order = np.argsort(-p, kind="stable")
    likeliest, unlikely = np.zeros(len(p)), np.ones(len(p))
    likeliest[order[0]], unlikely[order[:FEW]] = 1.0, 0.0
    return np.minimum(-np.log(np.maximum(p, 1e-12)), 6.0), likeliest, unlikely


def _mean(wealth: list[Rows], count: int, bets: int) -> float:
    logs = np.concatenate([*wealth, np.zeros((count - len(wealth)) * bets)])
    return float(log_sum(logs, 0)) - float(np.log(len(logs)))
