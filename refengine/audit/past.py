"""From what a subject emitted to the draws that evidence counts: the place of each token, and the state of its past.

The past of a token is what came before it: earlier rounds, the emitted prefix, rows above it in its batch up to its own
position. The current draft is no part of it, nor how much further any row will get: rows may be worked through one by
one, or all of them position by position and cut to the shortest, and either is lossless.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from refengine.audit.schedule import Case, step
from refengine.evidence.cells import SMALL
from refengine.evidence.rows import Rows, ratio
from refengine.evidence.sequential import Draws, Ints

PARITIES = 4
SIGNS = 3  # of p - q at a token: below, above, equal or not drafted
ROUND_BEFORE = tuple(f"the {what} of the previous round" for what in ("first token", "last token", "length"))
ABOVE = ("of the row above", "two rows above", "half a batch above")


def features(case: Case) -> dict[str, int]:
    """Every feature of the past with its number of states, in a fixed order; tokens are states where they are few."""
    tokens = case.vocabulary if case.vocabulary <= SMALL else 1
    return {
        "the place": 1,
        "the token before": tokens,
        **dict(zip(ROUND_BEFORE, (tokens, tokens, case.gamma + 1), strict=True)),
        **{f"the same place {where}": tokens for where in ABOVE},
        **{f"so far {where}": case.gamma + SIGNS for where in ABOVE},
        "the number of the call": PARITIES,
    }


@dataclass
class Past:
    """Turns blocks of emitted tokens into draws, remembering the last round across blocks."""

    case: Case
    lane_of: Callable[[Ints], Ints] | None  # the lanes of calls; None where every call takes all lanes
    last: NDArray[np.int32] | None = field(default=None)  # [lanes of a call, gamma + 1]
    odds: Rows = field(init=False)  # min(1, p/q) of every token at every place, 1 where it cannot be drafted
    sign: Ints = field(init=False)  # of p - q there

    def __post_init__(self) -> None:
        q = np.concatenate([self.case.q, np.zeros_like(self.case.p[:, :1])], axis=1)
        self.odds = np.where(q > 0, ratio(self.case.p, q), 1.0).reshape(-1, self.case.vocabulary)
        self.sign = np.where(q <= 0, 2, np.where(self.case.p < q, 0, np.where(self.case.p > q, 1, 2)))
        self.sign = self.sign.reshape(-1, self.case.vocabulary)

    def draws(self, tokens: NDArray[np.int32], start: int) -> Draws:
        """tokens int32 [calls, lanes of a call, gamma + 1] padded with -1, calls numbered from `start`."""
        calls = len(tokens)
        token = tokens.astype(np.int64)
        emitted = token >= 0
        shape = token.shape
        before = np.concatenate([np.full_like(token[:, :, :1], -1), token[:, :, :-1]], axis=2)
        previous = self._previous(token)
        previous_length = (previous >= 0).sum(2)
        last = np.take_along_axis(previous, np.maximum(previous_length - 1, 0)[:, :, None], axis=2)
        place = self._place(token, start)
        so_far = self._so_far(place, token)
        known = self.case.vocabulary <= SMALL
        nothing = np.full(shape, -1)
        states = {
            "the place": np.zeros(shape, dtype=np.int64),
            "the token before": before if known else nothing,
            "the first token of the previous round": np.broadcast_to(previous[:, :, :1], shape) if known else nothing,
            "the last token of the previous round": np.broadcast_to(last, shape) if known else nothing,
            "the length of the previous round": np.broadcast_to(previous_length[:, :, None] - 1, shape),
            "the number of the call": np.broadcast_to(((start + np.arange(calls)) % PARITIES)[:, None, None], shape),
        }
        for where, lag in zip(ABOVE, (1, 2, max(shape[1] // 2, 1)), strict=True):
            states[f"the same place {where}"] = _down(token, lag) if known else nothing
            states[f"so far {where}"] = _down(so_far, lag)
        told = {name: state[emitted] for name, state in states.items()}
        return Draws(place[emitted], token[emitted], told, coin=self._coin(place, token)[emitted])

    def _so_far(self, place: Ints, token: Ints) -> Ints:
        """Where a row had ended before a position, or else the sign of p - q at its token there: [calls, lanes, i]."""
        length = (token >= 0).sum(2)[:, :, None]
        sign = self.sign[place, np.maximum(token, 0)]
        return np.where(length <= np.arange(token.shape[2]), length - 1, self.case.gamma + sign)

    def _coin(self, place: Ints, token: Ints) -> Rows:
        """The coin of a block that has only one lies below this, as the kept tokens tell: [calls, lanes, i]."""
        least = np.ones(token.shape)
        odds = self.odds[place[:, :, :-1], np.maximum(token[:, :, :-1], 0)]
        least[:, :, 1:] = np.minimum.accumulate(odds, axis=2)
        return least

    def _previous(self, token: Ints) -> Ints:
        first = np.full_like(token[:1], -1) if self.last is None else self.last[None].astype(np.int64)
        self.last = token[-1].astype(np.int32) if len(token) else self.last
        return np.concatenate([first, token[:-1]], axis=0)

    def _place(self, token: Ints, start: int) -> Ints:
        """The index of (lane, position, context) of every token."""
        calls, width, positions = token.shape
        if self.lane_of is None:
            lane = np.broadcast_to(np.arange(width), (calls, width))
        else:
            lane = self.lane_of(start + np.arange(calls))[:, None]
        place, context = np.zeros_like(token), np.zeros((calls, width), dtype=np.int64)
        for i in range(positions):
            place[:, :, i] = (lane * positions + i) * self.case.contexts + context
            context = np.asarray(step(context, np.maximum(token[:, :, i], 0), self.case.contexts))
        return place


def _down(states: Ints, lag: int) -> Ints:
    """The state of the row `lag` rows above, -1 where there is none: [calls, lanes, ...]."""
    return np.concatenate([np.full_like(states[:, :lag], -1), states[:, :-lag]], axis=1)[:, : states.shape[1]]
