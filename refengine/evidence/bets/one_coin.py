"""The law of a defect with a memory: one coin decides about every draft of a block.

Since the drafts before were kept, the coin lies below the least of their min(1, p/q), and the next draft x is kept with
probability min(1, min(1, p/q (x)) / that least). So the law of the next token depends on the emitted prefix alone,
which a bet may depend on.
"""

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.bets.fixed_bets import SHARE_ALWAYS, bets
from refengine.evidence.rows import Rows, ratio, ratio_rule, residual

MAX_TABLED_VOCABULARY = 64  # above it no bet is placed: there would be a table for every prefix


def one_coin_law(p: Rows, q: Rows, below: Rows) -> Rows:
    """The law of the next token where the coin lies below `below`: p, q [..., V], below [...]."""
    return ratio_rule(q, np.minimum(1.0, ratio(p, q) / below[..., None]), residual(p, q))


class OneCoin:
    """The bet on that law: p, q [lanes, gamma + 1, contexts, V], with q = p and so no bet where there is no draft."""

    def __init__(self, p: Rows, q: Rows, ball: float) -> None:
        self.p, self.q, self.ball = p.reshape(-1, p.shape[-1]), q.reshape(-1, p.shape[-1]), ball
        self.typical = _typical(p, q).ravel()

    def log_ratio(self, site: NDArray[np.int64], token: NDArray[np.int64], below: Rows) -> Rows:
        """log of the factor by which every draw multiplies the wealth: [n]."""
        gained = np.zeros(len(site))
        known = (
            (below > 0) & (below < 1) if self.p.shape[-1] <= MAX_TABLED_VOCABULARY else np.zeros(len(site), dtype=bool)
        )
        if known.any():
            (where, least), each = np.unique(np.stack([site[known], below[known]]), axis=1, return_inverse=True)
            log_ratio, _ = self._bets(where.astype(np.int64), least)
            gained[known] = log_ratio[each.ravel(), token[known]]
        return gained

    def growth(self) -> Rows:
        """Its expected growth at every site for a typical prefix: [1, S]."""
        return self._bets(np.arange(len(self.p)), self.typical)[1][None]

    def _bets(self, site: NDArray[np.int64], below: Rows) -> tuple[Rows, Rows]:
        p, q = self.p[site], self.q[site]
        with np.errstate(divide="ignore", invalid="ignore"):
            law = one_coin_law(p, q, below)
            log_ratio, growth = bets((SHARE_ALWAYS * law + (1.0 - SHARE_ALWAYS) * p)[None], p, self.ball)
        return log_ratio[0], growth[0]


def _typical(p: Rows, q: Rows) -> Rows:
    """The mean of min(1, p/q) over the drafts that were kept at the position before: [lanes, gamma + 1, contexts]."""
    accept = ratio(p, q)
    kept = (q * accept).sum((-1, -2))
    mean = (q * accept**2).sum((-1, -2)) / np.where(kept > 0, kept, 1.0)
    before = np.concatenate([np.ones_like(mean[:, :1]), np.where(kept > 0, mean, 1.0)[:, :-1]], axis=1)
    return np.broadcast_to(before[:, :, None], p.shape[:-1])
