"""A fixed bet: the factor by which one draw multiplies the wealth, given the law that is bet on."""

import math

import numpy as np

from refengine.evidence.alpha import NATS
from refengine.evidence.rows import Rows

BALL = 1e-6  # the null of a float32 subject: total variation around p
DECISIVE_NATS = math.ceil(NATS)  # what an impossible token is worth when cases are compared
FLOOR = 1e-6  # of a law, where its logarithm is taken
CAPS = (np.inf, 1e4, 1e3)  # of R: the ball's mass on a rare token might cost more than the token is worth
# Shares of a listed law in its bets, the rest being p: a near miss must not ruin the bettor.
SHARE_ALWAYS, SHARE_SELDOM = 0.99, 0.05


def bets(law: Rows, p: Rows, ball: float) -> tuple[Rows, Rows]:
    """log R and its expected growth where the law holds, [K, S, V] and [K, S]; no bet where none is worth its cost."""
    ratio = np.where(p > 0, law / np.where(p > 0, p, 1.0), 1.0)
    capped = [_capped(ratio, cap, p, ball) for cap in CAPS if cap == np.inf or ratio.max() > cap]
    placed = [np.where(p > 0, log_ratio, np.log(law + FLOOR) + DECISIVE_NATS) for log_ratio in capped]
    growth = np.stack([(law * log_ratio).sum(-1) for log_ratio in placed])
    log_ratio, most = np.choose(growth.argmax(0)[..., None], placed), growth.max(0)
    idle = (most <= 0) | (np.abs(law - p).max(-1) < 1e-9)
    return np.where(idle[..., None], 0.0, log_ratio), np.where(idle, 0.0, most)


def _capped(ratio: Rows, cap: float, p: Rows, ball: float) -> Rows:
    """log R of R at most `cap`: for any law in the ball E[R] <= 1 - the mass that the cap takes + ball (max R - min R).
    A token without mass ends the audit, so its log R only compares the listed laws with one another."""
    bounded = np.minimum(ratio, cap)
    taken = np.where(p > 0, p * (ratio - bounded), 0.0).sum(-1)
    high = np.where(p > 0, bounded, -np.inf).max(-1)
    low = np.where(p > 0, bounded, np.inf).min(-1)
    return np.asarray(np.log(bounded) - np.log(1.0 - taken + ball * (high - low))[..., None])
