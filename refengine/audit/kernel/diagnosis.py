"""The diagnosis of a sampled violation: the class of a listed defect that explains the counts, or where it shows.

The posterior weighs the listed defects against one another and against bets that learn, but a defect that nobody listed
may look more like one of them than like chance. So before a listed defect is named, the counts are tested against its
law: the same learners, with that law for their null. Under it their wealth reaches 1/DOUBT with probability DOUBT at
most.
"""

from collections import defaultdict
from copy import copy

import numpy as np

from refengine.audit.kernel.campaign import Campaign, Tried
from refengine.audit.kernel.history import ABOVE, FURTHER_BACK, ROUND_BEFORE
from refengine.evidence.bets.defect_laws import alternatives
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.bets.learned_bets import Learner
from refengine.evidence.bets.token_kinds import cells
from refengine.evidence.e_process import ALONE, EVERYWHERE, LISTED, TILTS
from refengine.evidence.naming import (
    COUNTED_CALLS,
    DEPENDENT_POSITIONS,
    DEPENDENT_ROUNDS,
    DEPENDENT_ROWS,
    DISTANT_ROUNDS,
    ONE_COIN,
    SELDOM,
    joined,
    unexplained,
)
from refengine.evidence.rows import Rows, log_sum

DIAGNOSIS_CALLS, DIAGNOSIS_CALLS_WIDE = 2000, 4  # over all inputs, and of each that has many ids
DOUBT = 1e-3  # the probability that the right class is not named
MIN_POSTERIOR = 0.2  # of a component that may be named
STRIKING_SHARES = np.array(
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 0.999]
)  # how often a defect strikes
FLOOR = 1e-9  # of a law's probability, so that one token nearly refutes a law that excludes it
# The diagnosis where emitted tokens depend on a feature of the history.
SHARED = {
    "the token before": DEPENDENT_POSITIONS,
    **{feature: DEPENDENT_ROWS for where in ABOVE for feature in (f"the same position {where}", f"so far {where}")},
    **dict.fromkeys(ROUND_BEFORE, DEPENDENT_ROUNDS),
    FURTHER_BACK: DISTANT_ROUNDS,
    "the number of the call": COUNTED_CALLS,
}


def diagnose(campaign: Campaign) -> str:
    """The listed defects that explain the counts. Some more calls of every input tell them apart, and from defects that
    nobody listed."""
    usable = [name for name in campaign.cases if name not in campaign.skipped]
    for name in usable:
        wide = campaign.cases[name].case.cell is not None  # a call of many ids takes long
        campaign.run(name, DIAGNOSIS_CALLS_WIDE if wide else DIAGNOSIS_CALLS // len(campaign.cases), stop=False)
    names, posterior = campaign.evidence.components(), campaign.evidence.posterior()
    likely = [i for i in np.argsort(-posterior) if posterior[i] > MIN_POSTERIOR]
    listed = [names[i] for i in likely if i < len(LISTED)]
    tried = [campaign.cases[name] for name in usable if campaign.cases[name].calls]
    listed = [name for name in listed if name == ONE_COIN or explains(name.removesuffix(SELDOM), tried)]
    if listed:
        return joined(listed)
    feature = names[likely[0]].removeprefix(EVERYWHERE).removeprefix(ALONE) if likely else ""
    return SHARED[feature] if feature in SHARED and depends(feature, tried) else where_it_shows(tried)


def depends(feature: str, tried: list[Tried]) -> bool:
    """Whether the law of a token differs from one state of the feature to another. A learner that tells states apart
    also grows where the law is wrong in all of them alike; so its null here is the law observed at the site, whatever
    the state."""
    learners = [item.evidence.learners[feature] for item in tried]
    return bool(max(_over_inputs([_to_its_place(learner) for learner in learners])) > -np.log(DOUBT))


def _to_its_place(learner: Learner) -> tuple[float, float]:
    """The wealth of a learner whose null is the law that it counted itself, over all states of its feature."""
    own, width = copy(learner), learner.mass.shape[1]
    counts = learner.counts[0].reshape(-1, learner.states, width).sum(1)
    own.mass = np.repeat(counts / np.maximum(counts.sum(1, keepdims=True), 1.0), learner.states, axis=0)
    own.log_null = np.log(np.where(own.mass > 0, own.mass, 1.0))
    everywhere, alone = own.log_wealth()
    return float(everywhere[0]), float(alone[0])


def _over_inputs(wealth: list[tuple[float, float]]) -> tuple[float, float]:
    """Of a bet on all inputs, and of one on any of them."""
    everywhere, alone = np.array(wealth).T
    return float(everywhere.sum()), float(log_sum(alone, 0) - np.log(len(alone)))


def explains(name: str, tried: list[Tried]) -> bool:
    """Whether the law of a listed defect, however often it strikes, leaves nothing to learn."""
    tables = [_of(name, item) for item in tried]

    def fit(share: float) -> float:
        return sum(float((counts * np.log(_struck(law, p, share))).sum()) for counts, law, p in tables)

    share = float(max(STRIKING_SHARES, key=fit))
    wealth = [
        _against(_struck(law, p, share), item, counts) for item, (counts, law, p) in zip(tried, tables, strict=True)
    ]
    parts = np.array([*_over_inputs(wealth), _by_part(share, tried, tables)])
    return bool(log_sum(parts, 0) - np.log(len(parts)) < -np.log(DOUBT))


def _of(name: str, item: Tried) -> tuple[Rows, Rows, Rows]:
    """Counts, the law of the defect and p: [S, V] each."""
    p = item.evidence.p
    return item.evidence.counts[0], alternatives(item.case.p, item.case.q, item.case.sizes)[name].reshape(p.shape), p


def _struck(law: Rows, p: Rows, share: float) -> Rows:
    return share * law + (1.0 - share) * p + FLOOR


def _by_part(share: float, tried: list[Tried], tables: list[tuple[Rows, Rows, Rows]]) -> float:
    """The log wealth of bets that the defect strikes more or less often at one position of all inputs, or on one input:
    the tokens that it favours are tilted there, exp(t [favoured]) / its mean under the law."""
    wealth: dict[object, Rows] = defaultdict(lambda: np.zeros_like(TILTS))
    for item, (counts, law, p) in zip(tried, tables, strict=True):
        favoured = law > p
        mass = (_struck(law, p, share) * favoured).sum(-1)
        gained = (counts * favoured).sum(-1)[:, None] * TILTS - counts.sum(-1)[:, None] * np.log1p(
            mass[:, None] * np.expm1(TILTS)
        )
        position = np.arange(len(p)) // item.case.contexts % (item.case.gamma + 1)
        for i in range(item.case.gamma + 1):
            wealth[i if i < item.case.gamma else "bonus"] += gained[position == i].sum(0)
        wealth[item.case.name] += gained.sum(0)
    return float(log_sum(np.concatenate(list(wealth.values())), 0) - np.log(len(wealth) * len(TILTS)))


def _against(law: Rows, item: Tried, counts: Rows) -> tuple[float, float]:
    """The wealth of a learner of sites whose null is `law`."""
    case = item.case
    drafted = np.concatenate([case.q, case.p[:, -1:]], axis=1).reshape(law.shape)
    cell = cells(item.evidence.p, drafted)
    learner = Learner(law / law.sum(-1, keepdims=True), cell, np.arange(len(law)), 1, BALL, 1)
    for site, row in enumerate(counts):
        learner.counts[0, site] = np.bincount(cell[site], row, learner.counts.shape[2])
    everywhere, alone = learner.log_wealth()
    return float(everywhere[0]), float(alone[0])


def where_it_shows(tried: list[Tried]) -> str:
    """The site where the evidence is strongest, and the token there that is furthest from its expected share."""
    item = max(tried, key=lambda item: float(item.evidence.learners["the site"].log_wealth()[1][0]))
    learner = item.evidence.learners["the site"]
    group, _ = learner.strongest()
    sites = np.flatnonzero(learner.group == group)
    counts, due = item.evidence.counts[0, sites].sum(0), item.evidence.p[sites[0]]
    draws = max(counts.sum(), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(counts - draws * due) / np.sqrt(draws * due * (1.0 - due))
    token = int(np.nanargmax(np.where(due > 0, off, np.where(counts > 0, np.inf, 0.0))))
    position = int(sites[0] // item.case.contexts % (item.case.gamma + 1))
    word = "often" if counts[token] > draws * due[token] else "seldom"
    cell = item.case.cell
    which = (
        f"token {token}" if cell is None else f"a token like {int(np.argmax(cell == token))}"
    )  # a subject knows no cells
    return unexplained(
        f"at position {position} of a block: on input {item.case.name!r} {which} comes too {word}, "
        f"{counts[token] / draws:.2g} of the time where {due[token]:.2g} is due"
    )
