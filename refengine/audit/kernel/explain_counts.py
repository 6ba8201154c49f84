"""Whether sampled counts are explained by the law of a listed defect, or by p itself.

A defect that nobody listed may look more like a listed one than like chance. So the counts are tested against the law:
learners of sites and of short prefixes, with that law for their null. Under it their wealth reaches 1/DOUBT with
probability DOUBT at most.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refengine.audit.inputs.case import Case
from refengine.audit.kernel.campaign import Tried
from refengine.audit.kernel.exact_law import context_after
from refengine.audit.kernel.place import behind
from refengine.audit.kernel.shared_coins import WAYS, next_row
from refengine.evidence.bets.defect_laws import alternatives
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.bets.learned_bets import Learner
from refengine.evidence.bets.token_kinds import SMALL_VOCABULARY, cells
from refengine.evidence.e_process import DEFECTS, TILTS, Ints
from refengine.evidence.rows import Rows, log_sum

DOUBT = 1e-3  # the probability that the right class is not named
MIN_POSTERIOR = 0.2  # of a component, or of one way of sharing among all, that may be named
STRIKING_SHARES = np.array(
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 0.999]
)  # how often a defect strikes
LONGEST_PREFIX = 2  # behind which counts are compared with a law
NULL = ""  # in place of a defect: the law p
FLOOR = 1e-9  # of a law's probability, so that one token nearly refutes a law that excludes it


@dataclass(frozen=True)
class Counted:
    """What came at the sites of an input, or behind its short prefixes, beside what a defect says: rows [S, V].

    q         of the draft, or p where there is none
    position  [S]
    """

    case: Case
    came: Rows
    law: Rows
    p: Rows
    q: Rows
    position: Ints

    def struck(self, share: float) -> Rows:
        """The law of a defect that strikes so often."""
        return share * self.law + (1.0 - share) * self.p + FLOOR

    def fit(self, share: float) -> float:
        return float((self.came * np.log(self.struck(share))).sum())


def explains(name: str, tried: list[Tried], sharers: Sequence[int] | None = None) -> bool:
    """Whether the law of a listed defect, however often it strikes, leaves nothing to learn.

    sharers  per input, of how many draws any may come from one coin: so many count for one
    """
    each = list(zip(tried, sharers or [1] * len(tried), strict=True))
    by_prefix = [_prefixes(item, [name], many)[name] for item, many in each if _is_small(item.case)]
    return _nothing_left([_sites(item, name, many) for item, many in each], by_prefix)


def ways_that_explain(tried: list[Tried]) -> list[str]:
    """The likeliest ways in which the coins of a block are shared: where they say more than any listed defect, however
    often it strikes, and than a free law at every site or behind every prefix, and leave nothing to learn."""
    small = [item for item in tried if _is_small(item.case)]
    each = [_prefixes(item, [NULL, *WAYS, *DEFECTS]) for item in small]
    tables = {name: [found[name] for found in each] for name in (NULL, *WAYS, *DEFECTS)}
    gains = {name: _fitted(found)[1] for name, found in tables.items()}
    free = [
        over_inputs([_against(0.0, one) for one in found])
        for found in (tables[NULL], [_sites(item, NULL) for item in small])
    ]
    least = max(max(gains.values()) + np.log(MIN_POSTERIOR), *(everywhere for everywhere, _ in free), -np.log(DOUBT))
    return [way for way in WAYS if gains[way] > least and _nothing_left(tables[way])]


def _is_small(case: Case) -> bool:
    return case.cell is None and case.vocabulary <= SMALL_VOCABULARY


def _fitted(tables: list[Counted]) -> tuple[float, float]:
    """How often the defect strikes, and how much likelier the counts are than under p."""
    fits = [sum(counted.fit(share) for counted in tables) for share in (0.0, *STRIKING_SHARES)]
    best = int(np.argmax(fits[1:]))
    return float(STRIKING_SHARES[best]), fits[1 + best] - fits[0]


def _nothing_left(*tables: list[Counted]) -> bool:
    """Whether bets against the law gain nothing, the first tables saying how often it strikes."""
    share, _ = _fitted(tables[0])
    learned = [over_inputs([_against(share, counted) for counted in found]) for found in tables if found]
    everywhere, alone = _log_mean(np.array(learned), 0)
    return bool(_log_mean(np.array([_by_part(share, tables[0]), everywhere, alone]), 0) < -np.log(DOUBT))


def _log_mean(logs: Rows, axis: int) -> Rows:
    return np.asarray(log_sum(logs, axis) - np.log(logs.shape[axis]))


def _sites(item: Tried, name: str, many: int = 1) -> Counted:
    case, p = item.case, item.evidence.p
    position = np.arange(len(p)) // case.contexts % (case.gamma + 1)
    law, drafted = _laws(case)[name], _drafted(case)
    return Counted(case, item.evidence.counts[0] / many, law.reshape(p.shape), p, drafted.reshape(p.shape), position)


def _prefixes(item: Tried, names: Sequence[str], many: int = 1) -> dict[str, Counted]:
    """By defect."""
    case, found = item.case, behind(item.lanes, item.case, LONGEST_PREFIX)
    at = [(lane, len(emitted), context_after(case, emitted)) for lane, *emitted in found]
    where = tuple(np.array(at).T)
    came = np.array([weights.sum(0) for weights in found.values()]) / many
    laws = _laws(case)

    def law(name: str) -> Rows:
        if name not in WAYS:
            return np.asarray(laws[name][where])
        return np.asarray([next_row(name, case, lane, emitted) for lane, *emitted in found])

    p, drafted = case.p[where], _drafted(case)[where]
    return {name: Counted(case, came, law(name), p, drafted, where[1]) for name in names}


def _drafted(case: Case) -> Rows:
    """The draft's row of every site, p's where there is none."""
    return np.concatenate([case.q, case.p[:, -1:]], axis=1)


def _laws(case: Case) -> dict[str, Rows]:
    return {NULL: case.p, **alternatives(case.p, case.q, case.sizes)}


def _by_part(share: float, tables: list[Counted]) -> float:
    """The log wealth of bets that the defect strikes more or less often at one position of all inputs, or on one input:
    the tokens that it favours are tilted there, exp(t [favoured]) / its mean under the law."""
    wealth: dict[object, Rows] = defaultdict(lambda: np.zeros_like(TILTS))
    for counted in tables:
        favoured, gamma = counted.law > counted.p, counted.case.gamma
        mass = (counted.struck(share) * favoured).sum(-1)
        gained = (counted.came * favoured).sum(-1)[:, None] * TILTS - counted.came.sum(-1)[:, None] * np.log1p(
            mass[:, None] * np.expm1(TILTS)
        )
        for i in range(gamma + 1):
            wealth[i if i < gamma else "bonus"] += gained[counted.position == i].sum(0)
        wealth[counted.case.name] += gained.sum(0)
    return float(log_sum(np.concatenate(list(wealth.values())), 0) - np.log(len(wealth) * len(TILTS)))


def _against(share: float, counted: Counted) -> tuple[float, float]:
    """The wealth of a learner of sites, or of prefixes, whose null is the law."""
    law, cell = counted.struck(share), cells(counted.p, counted.q)
    learner = Learner(law / law.sum(-1, keepdims=True), cell, np.arange(len(law)), 1, BALL, 1)
    for site, row in enumerate(counted.came):
        learner.counts[0, site] = np.bincount(cell[site], row, learner.counts.shape[2])
    everywhere, alone = learner.log_wealth()
    return float(everywhere[0]), float(alone[0])


def over_inputs(wealth: list[tuple[float, float]]) -> tuple[float, float]:
    """Of a bet on all inputs, and of one on any of them."""
    everywhere, alone = np.array(wealth).T
    return float(everywhere.sum()), float(_log_mean(alone, 0))
