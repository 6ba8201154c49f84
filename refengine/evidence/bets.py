"""A fixed bet: what one draw multiplies the wealth by, given the law that is bet on."""

import numpy as np

from refengine.evidence.rows import Rows

BALL = 1e-6  # the null of a float32 subject: total variation around p
DECISIVE = 14.0  # what an impossible token is worth when cases are compared: log 1e6
FLOOR = 1e-6
# Shares of a listed law in its bets, the rest being p: a near miss must not ruin the bettor.
ALWAYS, SELDOM = 0.99, 0.05


def bets(law: Rows, p: Rows, ball: float) -> tuple[Rows, Rows]:
    """log R and its expected growth where the law holds, [K, S, V] and [K, S]; no bet where none is worth its cost."""
    live = p > 0
    ratio = np.where(live, law / np.where(live, p, 1.0), 1.0)
    # A token without mass ends the matter, so what is paid for it only tells the listed laws apart.
    high = np.where(live, ratio, -np.inf).max(-1)
    low = np.where(live, ratio, np.inf).min(-1)
    log_ratio = np.log(ratio) - np.log1p(ball * (high - low))[..., None]
    log_ratio = np.where(live, log_ratio, np.log(law + FLOOR) + DECISIVE)
    growth = (law * log_ratio).sum(-1)
    idle = (growth <= 0) | (np.abs(law - p).max(-1) < 1e-9)
    return np.where(idle[..., None], 0.0, log_ratio), np.where(idle, 0.0, growth)
