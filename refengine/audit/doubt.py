"""Whether a listed defect explains what was emitted, and what there is to say where none does.

The posterior weighs the listed defects against one another and against bets that learn, but a defect that nobody listed
may look more like one of them than like chance. So what was counted is held to the law of the one that is to be named:
the same learners, with that law for their null. Under it their wealth reaches 1/DOUBT with probability DOUBT at most.
"""

import numpy as np

from refengine.audit.drive import Progress
from refengine.evidence.bets import BALL
from refengine.evidence.cells import cells
from refengine.evidence.learning import Learner
from refengine.evidence.rows import Rows, log_sum
from refengine.evidence.wide import laws

DOUBT = 1e-3
SHARES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 0.999])  # how often the defect strikes
FLOOR = 1e-9  # of a law: what it says cannot be is as good as refuted by one token


def explains(name: str, met: list[Progress]) -> bool:
    """Whether the law of a listed defect, however often it strikes, leaves nothing that shows."""
    told = [
        (
            item,
            item.evidence.counts[0],
            laws(item.case.p, item.case.q, item.case.sizes)[name].reshape(item.evidence.p.shape),
        )
        for item in met
    ]

    def struck(law: Rows, p: Rows, share: float) -> Rows:
        return share * law + (1.0 - share) * p + FLOOR

    def fit(share: float) -> float:
        return sum(float((counts * np.log(struck(law, item.evidence.p, share))).sum()) for item, counts, law in told)

    share = float(max(SHARES, key=fit))
    wealth = np.array([_against(struck(law, item.evidence.p, share), item, counts) for item, counts, law in told])
    everywhere, alone = wealth[:, 0].sum(), log_sum(wealth[:, 1], 0) - np.log(len(wealth))
    return bool(np.logaddexp(everywhere, alone) - np.log(2.0) < -np.log(DOUBT))


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
    return (
        f"unlisted, at position {position} of a block: on input {item.case.name!r} token {token} comes too {word}, "
        f"{counts[token] / draws:.2g} of the time where {due[token]:.2g} is due"
    )
