"""What is to be said of a defect: its class, where a listed one explains what was emitted, or where it shows.

The posterior weighs the listed defects against one another and against bets that learn, but a defect that nobody listed
may look more like one of them than like chance. So what was counted is held to the law of the one that is to be named:
the same learners, with that law for their null. Under it their wealth reaches 1/DOUBT with probability DOUBT at most.
"""

from collections import defaultdict
from copy import copy

import numpy as np

from refengine.audit.kernel.campaign import Drive, Progress
from refengine.audit.kernel.history import ABOVE, FURTHER_BACK, ROUND_BEFORE
from refengine.evidence.defect_laws import alternatives
from refengine.evidence.e_process import ALONE, EVERYWHERE, LISTED, TILTS
from refengine.evidence.fixed_bets import BALL
from refengine.evidence.learned_bets import Learner
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
from refengine.evidence.token_kinds import cells

DIAGNOSIS_CALLS, FEW_CALLS = 2000, 4  # over all inputs, and of each that has many ids
DOUBT = 1e-3
SHARES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 0.999])  # how often the defect strikes
FLOOR = 1e-9  # of a law: what it says cannot be is as good as refuted by one token
# What a feature of the past says, where what is emitted depends on it.
SHARED = {
    "the token before": DEPENDENT_POSITIONS,
    **{feature: DEPENDENT_ROWS for where in ABOVE for feature in (f"the same place {where}", f"so far {where}")},
    **dict.fromkeys(ROUND_BEFORE, DEPENDENT_ROUNDS),
    FURTHER_BACK: DISTANT_ROUNDS,
    "the number of the call": COUNTED_CALLS,
}


def diagnose(drive: Drive) -> str:
    """The listed defects that explain what was emitted; some more calls of every input tell them apart, and from what
    nobody listed."""
    told = [name for name in drive.cases if name not in drive.skipped]
    for name in told:
        few = drive.cases[name].case.cell is not None  # a call of many ids takes long
        drive.run(name, FEW_CALLS if few else DIAGNOSIS_CALLS // len(drive.cases), stop=False)
    names, posterior = drive.evidence.components(), drive.evidence.posterior()
    likely = [i for i in np.argsort(-posterior) if posterior[i] > 0.2]
    listed = [names[i] for i in likely if i < len(LISTED)]
    met = [drive.cases[name] for name in told if drive.cases[name].calls]
    listed = [name for name in listed if name == ONE_COIN or explains(name.removesuffix(SELDOM), met)]
    if listed:
        return joined(listed)
    feature = names[likely[0]].removeprefix(EVERYWHERE).removeprefix(ALONE) if likely else ""
    return SHARED[feature] if feature in SHARED and depends(feature, met) else seen(met)


def depends(feature: str, met: list[Progress]) -> bool:
    """Whether what comes after one past differs from what comes after another. A learner that tells them apart also
    grows where all are wrong alike; so its null is here what was emitted at the place, whatever the past."""
    learners = [item.evidence.learners[feature] for item in met]
    return bool(max(_over_inputs([_to_its_place(learner) for learner in learners])) > -np.log(DOUBT))


def _to_its_place(learner: Learner) -> tuple[float, float]:
    """The wealth of a learner whose null is what it counted itself, over all states of the past."""
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


def explains(name: str, met: list[Progress]) -> bool:
    """Whether the law of a listed defect, however often it strikes, leaves nothing that shows."""
    told = [_of(name, item) for item in met]

    def fit(share: float) -> float:
        return sum(float((counts * np.log(_struck(law, p, share))).sum()) for counts, law, p in told)

    share = float(max(SHARES, key=fit))
    wealth = [_against(_struck(law, p, share), item, counts) for item, (counts, law, p) in zip(met, told, strict=True)]
    parts = np.array([*_over_inputs(wealth), _by_part(share, met, told)])
    return bool(log_sum(parts, 0) - np.log(len(parts)) < -np.log(DOUBT))


def _of(name: str, item: Progress) -> tuple[Rows, Rows, Rows]:
    """Counts, the law of the defect and p: [S, V] each."""
    p = item.evidence.p
    return item.evidence.counts[0], alternatives(item.case.p, item.case.q, item.case.sizes)[name].reshape(p.shape), p


def _struck(law: Rows, p: Rows, share: float) -> Rows:
    return share * law + (1.0 - share) * p + FLOOR


def _by_part(share: float, met: list[Progress], told: list[tuple[Rows, Rows, Rows]]) -> float:
    """The log wealth of bets that the defect strikes more or less often at one position of all inputs, or on one input:
    what it favours is tilted there, exp(t [favoured]) / its mean under the law."""
    wealth: dict[object, Rows] = defaultdict(lambda: np.zeros_like(TILTS))
    for item, (counts, law, p) in zip(met, told, strict=True):
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


def _against(law: Rows, item: Progress, counts: Rows) -> tuple[float, float]:
    """The wealth of a learner of places whose null is `law`."""
    case = item.case
    drafted = np.concatenate([case.q, case.p[:, -1:]], axis=1).reshape(law.shape)
    cell = cells(item.evidence.p, drafted)
    learner = Learner(law / law.sum(-1, keepdims=True), cell, np.arange(len(law)), 1, BALL, 1)
    for place, row in enumerate(counts):
        learner.counts[0, place] = np.bincount(cell[place], row, learner.counts.shape[2])
    everywhere, alone = learner.log_wealth()
    return float(everywhere[0]), float(alone[0])


def seen(met: list[Progress]) -> str:
    """The place where the evidence is strongest, and the token there that is furthest from its due."""
    item = max(met, key=lambda item: float(item.evidence.learners["the place"].log_wealth()[1][0]))
    learner = item.evidence.learners["the place"]
    group, _ = learner.strongest()
    places = np.flatnonzero(learner.group == group)
    counts, due = item.evidence.counts[0, places].sum(0), item.evidence.p[places[0]]
    draws = max(counts.sum(), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(counts - draws * due) / np.sqrt(draws * due * (1.0 - due))
    token = int(np.nanargmax(np.where(due > 0, off, np.where(counts > 0, np.inf, 0.0))))
    position = int(places[0] // item.case.contexts % (item.case.gamma + 1))
    word = "often" if counts[token] > draws * due[token] else "seldom"
    cell = item.case.cell
    which = f"token {token}" if cell is None else f"a token like {int(np.argmax(cell == token))}"  # cells are ours
    return unexplained(
        f"at position {position} of a block: on input {item.case.name!r} {which} comes too {word}, "
        f"{counts[token] / draws:.2g} of the time where {due[token]:.2g} is due"
    )
