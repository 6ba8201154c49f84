"""Audits of simulated subjects: the campaign of `audit kernel` as it is, and a table of laws where the child stands."""

from time import monotonic
from typing import Any

import numpy as np

from refengine.audit.inputs.case import Case, step, turn
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.campaign import Campaign, End
from refengine.audit.kernel.history import features
from refengine.audit.sandbox.child import Outcome
from refengine.evidence.alpha import ALPHA, NATS
from refengine.evidence.bets.fixed_bets import BALL
from refengine.evidence.e_process import CaseEvidence
from refengine.evidence.rows import Rows

CAP = NATS  # an impossible token is worth as much as the whole verdict


class Simulated:
    """Stands where the child stands: answers "run" with tokens drawn from `laws[case]` [lanes, gamma + 1, C, V]. A call
    is one lane in its turn, or with `batch` every lane at once."""

    def __init__(self, told: dict[str, Case], laws: dict[str, Rows], batch: bool = False) -> None:
        self.told, self.laws, self.batch = told, laws, batch

    def ask(self, request: dict[str, Any], seconds: float) -> Outcome:
        if request["op"] != "run":
            return Outcome("result")
        item, law = self.told[request["name"]], self.laws[request["name"]]
        calls, width = len(request["seeds"]), item.lanes if self.batch else 1
        generator = np.random.default_rng(request["seeds"][0].tolist())
        turns = turn(request["start"] + np.arange(calls), item.lanes)
        lane = np.tile(np.arange(width), calls) if self.batch else turns
        n = len(lane)
        tokens = np.full((n, item.gamma + 1), -1, dtype=np.int32)
        live, context = np.ones(n, dtype=bool), np.zeros(n, dtype=np.int64)
        for i in range(item.gamma + 1):
            row = law[lane, i, context]
            cdf = row.cumsum(-1)
            y = (generator.random(n)[:, None] * cdf[:, -1:] < cdf).argmax(-1)
            tokens[live, i] = y[live]
            if i < item.gamma:  # a draft is kept as often as law and q can agree on it
                at = np.arange(n)
                agree = np.minimum(row, item.q[lane, i, context])[at, y] / row[at, y]
                live = live & (generator.random(n) < agree)
            context = np.asarray(step(context, y, item.contexts))
        if item.cell is not None:
            _, ids = np.unique(item.cell, return_index=True)
            tokens = np.where(tokens < 0, tokens, ids[tokens]).astype(np.int32)
        lanes = tokens.reshape(calls, width, -1)
        reply = {"tokens": lanes, "drafts": lanes[:, :, : item.gamma], "broken": None}
        return Outcome("result", reply)


def nats(law: Rows, p: Rows) -> Rows:
    """What a draw by `law` says against the null at every site: KL(law || p') where p' is the nearest law in the ball
    around p, which lifts the tokens rarest beside `law` until their ratio is c. An impossible token counts CAP, and so
    does a draw at most."""
    live = p > 0
    with np.errstate(all="ignore"):
        most = np.log(np.where(live, law / p, 0.0).max(-1, keepdims=True))
        low, high = np.zeros_like(most), np.maximum(most, 0.0)  # of log c
        for _ in range(50):
            middle = (low + high) / 2
            lifted = np.where(live, np.maximum(law * np.exp(-middle) - p, 0.0), 0.0).sum(-1, keepdims=True)
            low, high = np.where(lifted > BALL, middle, low), np.where(lifted > BALL, high, middle)
        nearest = np.maximum(p, law * np.exp(-high))
        terms = np.where(law > 0, law * np.where(live, np.log(law / nearest), CAP), 0.0)
    return np.asarray(np.clip(terms.sum(-1), 0.0, CAP))


class Audits:
    """Audits one after the other; the tables of the evidence are made once."""

    def __init__(self) -> None:
        self.told = {item.name: item for item in cases()}
        self.evidence = {name: CaseEvidence(i.p, i.q, features(i), sizes=i.sizes) for name, i in self.told.items()}

    def run(
        self, laws: dict[str, Rows], seed: int, calls: int, batch: bool = False
    ) -> tuple[Campaign, End | None, float]:
        """One audit of a subject that emits by `laws`: the campaign, its end, and the nats that its draws were worth,
        which is KL(law || p) summed over the sites that were visited."""
        child: Any = Simulated(self.told, laws, batch)
        campaign = Campaign(child, "verify_batch" if batch else "verify", seed, ALPHA, monotonic() + 3600.0)
        for name, item in self.told.items():
            self.evidence[name].reset()
            campaign.adopt(item, self.evidence[name])
        end = None
        for name, count in campaign.schedule(calls):
            end = campaign.run(name, count)
            if end is not None:
                break
        spent = 0.0
        for name, found in self.evidence.items():
            spent += float((found.counts[0].sum(-1) * nats(laws[name], self.told[name].p).ravel()).sum())
        return campaign, end, spent
