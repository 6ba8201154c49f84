"""Sequential evidence where no two rounds have the same rows, as in the record of a running engine.

The null and the validity are those of e_process.py: given the rows and the tokens before, the next token is ~ p. The
laws that are bet on cannot be tabled once, so they are computed for each round: the law of every listed defect, tilts
of each kind of token, and a learner that carries over from round to round how much more often than p says the tokens of
a cell were emitted. Each of its bets is fixed by the rows and the history alone.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.bets.learned_bets import CONCENTRATIONS
from refengine.evidence.bets.token_kinds import CELLS, KINDS, related
from refengine.evidence.e_process import LISTED, TILTS, CaseEvidence, Draws
from refengine.evidence.naming import SELDOM, joined, unexplained
from refengine.evidence.rows import Rows, ratio

MAX_LISTED_VOCABULARY = 2048  # above it a round would take seconds with the laws of all listed defects
MIN_SHARE_NAMED = 0.2  # of the wealth: what a component holds that the diagnosis names
SHARES = {"listed": 0.5, "tilts": 0.125, "learned": 0.375}


@dataclass
class Tilts:
    """A bet per group and concentration: R(x) = w(cell of x) / E_p[w], where w is (seen + c) / (expected + c)."""

    groups: int
    seen: Rows = field(init=False)
    expected: Rows = field(init=False)
    log_wealth: Rows = field(init=False)  # [groups, concentrations]

    def __post_init__(self) -> None:
        self.seen, self.expected = np.zeros((self.groups, CELLS)), np.zeros((self.groups, CELLS))
        self.log_wealth = np.zeros((self.groups, len(CONCENTRATIONS)))

    def add(self, group: int, mass: Rows, cell: int) -> None:
        """One token: the null mass of every cell, and its own cell, on which its bet does not depend."""
        weight = (self.seen[group] + CONCENTRATIONS[:, None]) / (self.expected[group] + CONCENTRATIONS[:, None])
        live = mass > 0
        mean = (weight * mass).sum(1)
        spread = np.where(live, weight, -np.inf).max(1) - np.where(live, weight, np.inf).min(1)
        self.log_wealth[group] += np.log(weight[:, cell]) - np.log(mean + BALL * spread)
        self.seen[group, cell] += 1.0
        self.expected[group] += mass

    def log_mean(self) -> float:
        return float(logsumexp(self.log_wealth) - np.log(self.log_wealth.size))

    def often(self, group: int) -> NDArray[np.bool_]:
        """The cells that were emitted more often than p says."""
        return np.asarray(self.seen[group] > self.expected[group])


class RoundEvidence:
    """The e-process over rounds of one vocabulary and at most `gamma` drafts. A group a position, and one for all."""

    def __init__(self, gamma: int) -> None:
        self.every = gamma + 1
        self.learned = Tilts(gamma + 2)
        self.fixed = np.zeros(len(LISTED) + len(KINDS) * len(TILTS))

    def add(self, p: Rows, q: Rows, tokens: NDArray[np.int64]) -> bool:
        """One round: p [gamma + 1, V], q [gamma, V], the tokens emitted. False when one of them has p = 0."""
        if (p[np.arange(len(tokens)), tokens] <= 0).any():
            return False
        drafted = np.concatenate([q, p[-1:]])
        if len(q) and p.shape[1] <= MAX_LISTED_VOCABULARY:  # the listed defects are of rounds that draft
            self.fixed += self._fixed(p, q, tokens)
        cell = related(p, drafted)
        for i, token in enumerate(tokens):
            mass = np.bincount(cell[i], p[i], CELLS).astype(float)
            for group in (i, self.every):
                self.learned.add(group, mass, int(cell[i, token]))
        return True

    def _fixed(self, p: Rows, q: Rows, tokens: NDArray[np.int64]) -> Rows:
        """Listed defects and fixed tilts: their log wealth of this round.

        The row of the next position is that after the current draft, which no bet may see; two contexts, here with the
        same rows, say that it is unknown.
        """
        target, draft = (rows[None, :, None].repeat(2, axis=2) for rows in (p, q))
        evidence = CaseEvidence(target, draft, {"the site": 1})
        position = np.arange(len(tokens), dtype=np.int64)
        kept = ratio(p[:-1], q)[position[:-1], tokens[:-1]]
        below = np.minimum.accumulate(np.concatenate([[1.0], kept]))
        evidence.add(Draws(2 * position, tokens, {"the site": np.zeros_like(position)}, coin=below))
        return evidence.log_wealth[0, : len(self.fixed)]

    def log_wealths(self) -> Rows:
        """log prior + log wealth of every component, the learner last."""
        tilts = len(self.fixed) - len(LISTED)
        prior = np.log(np.repeat([SHARES["listed"] / len(LISTED), SHARES["tilts"] / tilts], [len(LISTED), tilts]))
        return np.append(prior + self.fixed, np.log(SHARES["learned"]) + self.learned.log_mean())

    def log_evidence(self) -> float:
        return float(logsumexp(self.log_wealths()))

    def diagnosis(self) -> str:
        """The components that hold a fifth of the wealth or more."""
        share = np.exp(self.log_wealths() - self.log_evidence())
        often = ["seldom" if tilt < 0 else "often" for tilt in TILTS]
        tilts = [unexplained(f"in tokens with {kind}, which come too {word}") for kind in KINDS for word in often]
        listed = [name.removesuffix(SELDOM) for name in LISTED]
        names = [*listed, *tilts, unexplained("in what was learned from the rounds")]
        found = joined(names[i] for i in np.argsort(-share) if share[i] > MIN_SHARE_NAMED)
        return found or unexplained("in many small signs")
