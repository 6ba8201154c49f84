"""Many audits of correct samplers side by side, through the evidence that `audit kernel` uses.

Below the process boundary everything is the audit's own: the cases, the states of the past, the e-process, its looks.
Only the subject is a vectorised correct rule: the ratio rule for half of the audits, agreement for the others. An audit
looks after every block; a false alarm at alpha is a look at which the evidence reaches 1/alpha.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case, step, turn
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.history import History, features
from refengine.evidence.alpha import ALPHA
from refengine.evidence.e_process import CaseEvidence, Draws, Evidence
from refengine.evidence.rows import Rows, residual

CASES = ("mostly kept", "coin", "reversed", "one-hot draft", "near to 1e-2", "2 contexts", "against the odds")
BLOCKS = (16, 32, 64)  # calls of each case, one block after the other
Ints = NDArray[np.int64]


def pick(rows: Rows, generator: np.random.Generator) -> Ints:
    """One token per row by inverse CDF, never one without mass. [n, V] -> [n]."""
    cdf = rows.cumsum(-1)
    u = generator.random(len(rows))[:, None] * cdf[:, -1:]
    return np.asarray((u < cdf).argmax(-1))


def correct(item: Case, lane: Ints, agreement: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.int32]:
    """What a correct rule emits, one call per entry of `lane`: [n, 1, gamma + 1], padded with -1."""
    n, context = len(lane), np.zeros(len(lane), dtype=np.int64)
    out = np.full((n, 1, item.gamma + 1), -1, dtype=np.int32)
    live = np.ones(n, dtype=bool)
    for i in range(item.gamma + 1):
        p = item.p[lane, i, context]
        token = pick(p, generator)
        kept = np.zeros(n, dtype=bool)
        if i < item.gamma:
            q = item.q[lane, i, context]
            x = pick(q, generator)
            at = np.arange(n)
            accepted = generator.random(n) * q[at, x] < p[at, x]
            kept = np.where(agreement, token == x, accepted)
            correction = pick(residual(p, q), generator)
            token = np.where(agreement, token, np.where(accepted, x, correction))
        out[live, 0, i] = token[live]
        context = np.asarray(step(context, token, item.contexts))
        live = live & kept
    return out


def audits(copies: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """The largest log evidence that each of `copies` audits ever saw."""
    told = [item for item in cases() if item.name in CASES]
    evidence = Evidence(tuple(features(told[0])), ALPHA)
    pasts = {}
    for item in told:
        evidence.cases[item.name] = CaseEvidence(item.p, item.q, features(item), copies=copies)
        pasts[item.name] = History(item, partial(turn, lanes=item.lanes))
    most = np.zeros(copies)
    for calls in BLOCKS:
        for item in told:
            copy = np.repeat(np.arange(copies), calls)
            lane = turn(np.arange(calls * copies), item.lanes)
            out = correct(item, lane, copy % 2 == 0, generator)
            draws = pasts[item.name].draws(out, 0)
            whose = np.broadcast_to(copy[:, None, None], out.shape)[out >= 0]
            evidence.cases[item.name].add(Draws(draws.site, draws.token, draws.states, whose, draws.coin))
            most = np.maximum(most, evidence.log_evidence_of_copies())
    return most
