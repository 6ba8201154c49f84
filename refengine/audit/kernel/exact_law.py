"""An enumerated law of one call, compared with the conditional null."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case, step
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.fit import g_test, pool, pooled
from refengine.evidence.rows import Rows

MIN_SAMPLED_MASS = 3e-6  # of an outcome: rarer ones, of boundaries, are not expected in a sample
MIN_AGREEMENT = 1e-9  # the p-value below which the interception is distrusted rather than the subject

# What a token is conditioned on (history.py): the lanes above up to its own position, and its own prefix.
History = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]


@dataclass(frozen=True)
class Deviation:
    """How far a law is from the null at one site.

    tv          half the sum over histories and tokens of |mass - reach * p(token)|
    impossible  the mass of tokens with p = 0
    emitted     the history that contributes most: what this lane had emitted
    law, null   the next token after it: its conditional law, and the target's row
    """

    lane: int
    position: int
    tv: float
    impossible: float
    emitted: tuple[int, ...]
    law: tuple[float, ...]
    null: tuple[float, ...]


@dataclass(frozen=True)
class ExactLaw:
    """The enumerated law of one call on a case, with how far each site is from the null."""

    case: Case
    outcomes: list[Any]  # [(tokens per lane, probability)]
    runs: int
    sites: list[Deviation]

    @property
    def worst(self) -> Deviation:
        return max(self.sites, key=lambda site: site.tv)

    @property
    def impossible(self) -> Deviation:
        return max(self.sites, key=lambda site: site.impossible)

    def violates(self) -> bool:
        return self.worst.tv > BALL or self.impossible.impossible > 0

    def lanes(self) -> dict[tuple[int, ...], float]:
        """The probability of what each lane emits, by its number and its tokens."""
        found: dict[tuple[int, ...], float] = defaultdict(float)
        for lanes, mass in self.outcomes:
            for lane, tokens in enumerate(lanes):
                found[lane, *tokens] += mass
        return found

    def agrees(self, tokens: NDArray[np.int32]) -> bool:
        """Whether sampled calls [n, lanes, gamma + 1] follow this law: a check of interception, not of the subject."""
        usual = [(lanes, mass) for lanes, mass in self.outcomes if mass > MIN_SAMPLED_MASS]
        rank = {self._key(lanes): i for i, (lanes, _) in enumerate(usual)}
        counts = np.zeros(len(rank) + 1)
        for call in tokens:
            counts[rank.get(self._key([[t for t in lane if t >= 0] for lane in call.tolist()]), -1)] += 1
        mass = np.array([mass for _, mass in usual])
        if counts[-1] > 0:
            return False
        cell = pool(mass, np.ones_like(mass), len(tokens))
        return g_test(pooled(counts[:-1], cell), pooled(mass, cell)).p_value > MIN_AGREEMENT

    @staticmethod
    def _key(lanes: Any) -> tuple[tuple[int, ...], ...]:
        return tuple(map(tuple, lanes))


def exact_law(case: Case, reply: dict[str, Any]) -> ExactLaw:
    """From the worker's reply to "exact"."""
    return ExactLaw(case, reply["outcomes"], reply["runs"], deviations(case, reply["outcomes"]))


def deviations(case: Case, outcomes: list[Any]) -> list[Deviation]:
    """One per site of a call; `outcomes` is [(tokens per lane, probability)]."""
    lanes = len(outcomes[0][0])
    found = []
    for lane in range(lanes):
        for position in range(case.gamma + 1):
            masses: dict[History, Rows] = defaultdict(lambda: np.zeros(case.vocabulary))
            for tokens, mass in outcomes:
                if len(tokens[lane]) > position:
                    above = tuple(tuple(row[: position + 1]) for row in tokens[:lane])
                    history = (above, tuple(tokens[lane][:position]))
                    masses[history][tokens[lane][position]] += mass
            if masses:
                found.append(_deviation(case, lane, position, masses))
    return found


def _deviation(case: Case, lane: int, position: int, masses: dict[History, Rows]) -> Deviation:
    rows = {history: target_row(case, lane, history[1]) for history in masses}
    off = {history: float(np.abs(mass - mass.sum() * rows[history]).sum() / 2) for history, mass in masses.items()}
    impossible = sum(float(mass[rows[history] == 0].sum()) for history, mass in masses.items())
    worst = max(off, key=lambda history: off[history])
    law = masses[worst] / masses[worst].sum()
    return Deviation(
        lane, position, sum(off.values()), impossible, worst[1], tuple(law.tolist()), tuple(rows[worst].tolist())
    )


def target_row(case: Case, lane: int, emitted: tuple[int, ...]) -> Rows:
    """The target's row after what a lane has emitted."""
    return np.asarray(case.p[lane, len(emitted), context_after(case, emitted)])


def context_after(case: Case, emitted: Sequence[int]) -> int:
    context = 0
    for token in emitted:
        context = int(step(context, token, case.contexts))
    return context
