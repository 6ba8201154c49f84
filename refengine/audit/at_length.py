"""Draws at length: how often each token came at each site, which shards add up, and the evidence of all of them.

The evidence is that of `audit kernel` with what can be told from counts alone: listed defects, tilts, and learners that
ask for nothing but the site. So the verdict is a function of the sums, whoever drew what. That a token depends on
earlier rounds or on other rows of its batch is seen by `audit kernel`, which has the order of its draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case, step
from refengine.evidence.bets.learned_bets import CONCENTRATIONS
from refengine.evidence.e_process import CaseEvidence, Draws, Evidence, Ints
from refengine.evidence.power import ends_wealth
from refengine.report.finding import Quantity

SITE = "the site"
NONE: Ints = np.zeros(0, dtype=np.int64)


def counted(item: Case, lane: Ints, tokens: NDArray[Any]) -> Ints:
    """How often each token came at each site (lane, position, context): [S, V]. tokens [n, gamma + 1], padded with -1;
    lane [n], of each row."""
    positions, counts = item.gamma + 1, np.zeros(item.p.size, dtype=np.int64)
    context = np.zeros(len(lane), dtype=np.int64)
    for i in range(positions):
        token = tokens[:, i].astype(np.int64)
        live, site = token >= 0, (lane * positions + i) * item.contexts + context
        counts += np.bincount((site * item.vocabulary + token)[live], minlength=counts.size)
        context = np.asarray(step(context, np.maximum(token, 0), item.contexts))
    return counts.reshape(-1, item.vocabulary)


@dataclass(frozen=True)
class Judged:
    """What the counts of all inputs say.

    accused    a token of probability zero came, or the evidence reached 1/alpha
    log10      of the evidence
    tokens     how many were emitted
    seen       the total variation at the site visited most that would have been seen with probability 0.99
    farthest   the count that is farthest from what is due, by its deviance: where it is, and the counts
    """

    accused: bool
    log10: float
    tokens: int
    seen: float
    farthest: dict[str, Any]

    def numbers(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "log10 of the evidence": Quantity(value=round(self.log10, 3), tolerance=0.01),
            "TV that would be seen": Quantity(value=round(self.seen, 9), tolerance=1e-6),
        }


def judged(items: Sequence[Case], counts: Mapping[str, Sequence[int]], alpha: float) -> Judged:
    """The verdict on counts by the names of inputs, [S, V] each, flat."""
    evidence, places, visits, impossible = Evidence((SITE,), alpha), list[dict[str, Any]](), [0.0], 0
    for item in items:
        seen = np.array(counts[item.name], dtype=np.float64).reshape(-1, item.vocabulary)
        evidence.cases[item.name] = found = CaseEvidence(item.p, item.q, {SITE: 1})
        impossible += int(seen[found.p <= 0].sum())
        _given(found, np.where(found.p > 0, seen, 0.0))
        visits.append(float(seen.sum(1).max()))
        places.append(_farthest(item, found.p, seen))
    groups = max(len(case.learners[SITE].mass) for case in evidence.cases.values())
    return Judged(
        bool(impossible) or evidence.rejects(),
        evidence.log_evidence() / float(np.log(10)),
        int(sum(sum(counts[item.name]) for item in items)),
        ends_wealth(max(visits), alpha, 16.0 * len(items) * groups * len(CONCENTRATIONS)),
        max(places, key=lambda place: float(place["deviations"])),
    )


def _given(found: CaseEvidence, seen: NDArray[np.float64]) -> None:
    """Put counts where the evidence of an input has counted draws: its wealth depends on nothing else."""
    found.counts[0] = seen
    learner = found.learners[SITE]
    for site, row in enumerate(seen):
        learner.counts[0, learner.group[site]] += np.bincount(learner.cell[site], row, learner.counts.shape[2])
    found.add(Draws(NONE, NONE, {SITE: NONE}))  # brings the wealth up to date


def _farthest(item: Case, p: NDArray[np.float64], seen: NDArray[np.float64]) -> dict[str, Any]:
    n = seen.sum(1, keepdims=True)
    due = n * p
    with np.errstate(divide="ignore", invalid="ignore"):  # the root of Poisson's deviance: right for rare tokens too
        twice = 2 * (np.where(seen > 0, seen * np.log(seen / due), 0.0) - seen + due)
    deviations = np.sqrt(np.maximum(twice, 0.0))
    site, token = np.unravel_index(int(deviations.argmax()), deviations.shape)
    lane, position, context = np.unravel_index(int(site), item.p.shape[:3])
    return {
        "input": item.name,
        "where": f"lane {lane}, position {position}, context {context}",
        "token": int(token),
        "times": int(seen[site, token]),
        "of": int(n[site, 0]),
        "probability due": float(p[site, token]),
        "deviations": str(round(float(deviations[site, token]), 2)),
    }
