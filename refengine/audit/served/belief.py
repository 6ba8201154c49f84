"""What a claim has gathered against it, in nats: two e-processes that a schedule may look at whenever it likes.

The first is for faults: the same thing is done to both sides, and each either shows the fault or does not. The null is
that both show it with one probability, which may be another at every look. The bet is the two-sample e-variable of
Turner, Ly and Grünwald (2024): the joint probability under two rates, divided by that under their mean for both. A
convention of the server that looks like a fault shows on both sides and accuses nobody. Both are asked with one prompt,
so the two may be dependent: with equal rates the bet's mean grows with the chance that they disagree, and is at most 1
as long as they disagree no more often than independent sides would.

The second is for partings: completions at temperature 0 that ought to be equal, and part only where two tokens tie. The
null is that this happens to a share of at most `tie_share` of the prompts, whatever was seen of the others (noise.py).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from typing import Any

import numpy as np

from refengine.evidence.rows import log_sum

RATES = ((0.99, 0.01), (0.8, 0.05), (0.5, 0.05), (0.2, 0.01))  # of a fault with speculation and without, to bet on
# Of the way from the share of ties to every prompt: what partings are bet to be.
SHARES = (0.01, 0.04, 0.15, 0.5, 0.8, 0.99)
OPEN = 2  # looks
HONEST_TOO = (
    "its answer is another in company, with speculation alone: so it is where fewer tokens are drafted under load, "
    "which moves no law, and where requests share coins"
)
SIGN_NATS = 1.0  # of evidence, from which a claim is looked at more closely
WITNESSES = 3  # that are kept of a claim
SEEN = 4096  # counts whose evidence is remembered: that of every claim is asked for before each look
MISSED = 0.01  # the probability with which a fault at least so frequent would not have shown


def signs_of(beliefs: Mapping[str, Any]) -> int:
    """Of all beliefs of a claim."""
    return sum(belief.signs for belief in beliefs.values())


@dataclass
class Faults:
    """`shown` counts (on, off): how often both, one or neither showed the fault. `besides` counts the same of what is
    like the fault, and an honest server may do: OPEN looks with speculation alone, or the only one, leave it open."""

    shown: dict[tuple[bool, bool], int] = field(default_factory=dict)
    witnesses: list[dict[str, Any]] = field(default_factory=list)
    besides: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def add(self, on: bool, off: bool, witness: dict[str, Any] | None = None) -> None:
        self.shown[on, off] = self.shown.get((on, off), 0) + 1
        if on and not off and witness is not None and len(self.witnesses) < WITNESSES:
            self.witnesses.append(witness)

    def add_besides(self, on: bool, off: bool) -> None:
        self.besides[on, off] += 1

    @property
    def looks(self) -> int:
        return sum(self.shown.values())

    @property
    def signs(self) -> int:
        """How often the fault showed with speculation alone."""
        return self.shown.get((True, False), 0)

    @property
    def log_evidence(self) -> float:
        return _of_faults(frozenset(self.shown.items()))

    def unsaid(self, bar: float) -> str:
        """Why nothing can be said after these looks."""
        on, off = self.besides[True, False], self.besides[False, True] + self.besides[True, True]
        return f"{HONEST_TOO} ({on} of {self.looks} looks)" if on >= min(OPEN, self.looks) > 0 and not off else ""

    def excluded(self, bar: float) -> str:
        return _seldom(self.looks)

    def counts(self) -> dict[str, int]:
        on = sum(n for (shows, _), n in self.shown.items() if shows)
        off = sum(n for (_, shows), n in self.shown.items() if shows)
        return {"looks": self.looks, "with speculation": on, "without": off}


@dataclass
class Partings:
    """How many of so many prompts parted, against the null of at most a share of ties."""

    tie_share: float
    parted: int = 0
    looks: int = 0
    witnesses: list[dict[str, Any]] = field(default_factory=list)

    def add(self, parted: bool, witness: dict[str, Any] | None = None) -> None:
        self.looks += 1
        self.parted += parted
        if parted and witness is not None and len(self.witnesses) < WITNESSES:
            self.witnesses.append(witness)

    @property
    def signs(self) -> int:
        return self.parted

    @property
    def log_evidence(self) -> float:
        return _of_partings(self.parted, self.looks, self.tie_share)

    def unsaid(self, bar: float) -> str:
        return ""

    def excluded(self, bar: float) -> str:
        return _seldom(self.looks)

    def counts(self) -> dict[str, int]:
        return {"looks": self.looks, "parted": self.parted}


@lru_cache(SEEN)
def _of_faults(shown: frozenset[tuple[tuple[bool, bool], int]]) -> float:
    ratios = [sum(n * _two_samples(on, off, *rates) for (on, off), n in sorted(shown)) for rates in RATES]
    return float(log_sum(np.array(ratios), 0) - log(len(RATES)))


@lru_cache(SEEN)
def _of_partings(parted: int, looks: int, null: float) -> float:
    rates = [null + (1 - null) * share for share in SHARES]
    ratios = [parted * log(rate / null) + (looks - parted) * log((1 - rate) / (1 - null)) for rate in rates]
    return float(log_sum(np.array(ratios), 0) - log(len(rates)))


def _seldom(looks: int) -> str:
    """What so many looks that showed nothing tell."""
    share = 1 - MISSED ** (1 / looks)
    return f"What shows in {share:.0%} of requests or more would have shown, with probability {1 - MISSED:.0%}."


def _two_samples(on: bool, off: bool, with_it: float, without: float) -> float:
    """The log of the e-variable of one look."""
    mean = (with_it + without) / 2

    def chance(shows: bool, rate: float) -> float:
        return log(rate if shows else 1 - rate)

    return chance(on, with_it) + chance(off, without) - chance(on, mean) - chance(off, mean)
