"""From emitted tokens to the draws that evidence counts: the site of each token, and the states of its history.

The history of a token is earlier rounds, the emitted prefix, and lanes above it in its batch up to its own position.
The current draft is no part of it, nor the length that any lane will reach: an engine may work through lanes one by
one, or through all of them position by position and cut them to the shortest, and either is lossless.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from refengine.audit.inputs.case import Case, step
from refengine.evidence.bets.token_kinds import SMALL_VOCABULARY
from refengine.evidence.e_process import Draws, Ints
from refengine.evidence.rows import Rows, ratio

CALL_NUMBERS = 4  # states of the number of the call: its remainder
SIGNS = 3  # of p - q at a token: below, above, equal or not drafted
ROUND_BEFORE = tuple(f"the {what} of the previous round" for what in ("first token", "last token", "length"))
FURTHER_BACK = "the last token of a round further back"
LAGS = np.array([2, 3, 4])  # in rounds, as of buffers that take turns; calls take the lags in turn
ABOVE = ("of the row above", "two rows above", "further above")
FURTHER_LAG = 3  # in lanes, from which on it is "further above": calls take those lags in turn
TOKENS = ("the token before", *ROUND_BEFORE[:2], FURTHER_BACK, *(f"the same position {where}" for where in ABOVE))


def features(case: Case) -> dict[str, int]:
    """Every feature of the history with its number of states, in a fixed order; few tokens are states themselves."""
    tokens = case.vocabulary if case.vocabulary <= SMALL_VOCABULARY else 1
    further = max(case.lanes - FURTHER_LAG, 1)
    return {
        "the site": 1,
        "the token before": tokens,
        **dict(zip(ROUND_BEFORE, (tokens, tokens, case.gamma + 1), strict=True)),
        FURTHER_BACK: tokens * len(LAGS),
        **{f"the same position {where}": tokens * n for where, n in zip(ABOVE, (1, 1, further), strict=True)},
        **{f"so far {where}": (case.gamma + SIGNS) * n for where, n in zip(ABOVE, (1, 1, further), strict=True)},
        "the number of the call": CALL_NUMBERS,
    }


@dataclass
class History:
    """Turns emitted tokens into draws. It remembers the last rounds from one reply of the child to the next."""

    case: Case
    lane_of: Callable[[Ints], Ints] | None  # the lanes of calls; None where every call takes all lanes
    last: Ints | None = field(default=None)  # [max(LAGS), lanes of a call, gamma + 1], -1 before there were any
    odds: Rows = field(init=False)  # min(1, p/q) of every token at every site, 1 where it cannot be drafted
    sign: Ints = field(init=False)  # of p - q there

    def __post_init__(self) -> None:
        q = np.concatenate([self.case.q, np.zeros_like(self.case.p[:, :1])], axis=1)
        self.odds = np.where(q > 0, ratio(self.case.p, q), 1.0).reshape(-1, self.case.vocabulary)
        self.sign = np.where(q <= 0, 2, np.where(self.case.p < q, 0, np.where(self.case.p > q, 1, 2)))
        self.sign = self.sign.reshape(-1, self.case.vocabulary)

    def draws(self, tokens: NDArray[np.int32], start: int) -> Draws:
        """tokens int32 [calls, lanes of a call, gamma + 1] padded with -1, calls numbered from `start`."""
        token = tokens.astype(np.int64)
        emitted, shape = token >= 0, token.shape
        number = start + np.arange(len(token))
        site = self._site(token, start)
        states = {
            "the site": np.zeros(shape, dtype=np.int64),
            "the token before": np.concatenate([np.full_like(token[:, :, :1], -1), token[:, :, :-1]], axis=2),
            **self._before(token, number),
            **self._above(site, token, number),
            "the number of the call": (number % CALL_NUMBERS)[:, None, None],
        }
        if self.case.vocabulary > SMALL_VOCABULARY:
            states |= dict.fromkeys(TOKENS, np.full((1, 1, 1), -1))
        observed = {name: np.broadcast_to(state, shape)[emitted] for name, state in states.items()}
        return Draws(site[emitted], token[emitted], observed, coin=self._coin(site, token)[emitted])

    def _before(self, token: Ints, number: Ints) -> dict[str, Ints]:
        """The states of earlier rounds of the same lanes: [calls, lanes, 1]."""
        rounds = np.concatenate([np.full((LAGS[-1], *token.shape[1:]), -1) if self.last is None else self.last, token])
        self.last = rounds[-LAGS[-1] :]
        previous, which = rounds[LAGS[-1] - 1 : -1], number % len(LAGS)
        further = _last(rounds[LAGS[-1] + np.arange(len(token)) - LAGS[which]])
        lengths = (previous >= 0).sum(2)[:, :, None]
        found = dict(zip(ROUND_BEFORE, (previous[:, :, :1], _last(previous), lengths - 1), strict=True))
        return {**found, FURTHER_BACK: _apart(further, which, self.case.vocabulary)}

    def _above(self, site: Ints, token: Ints, number: Ints) -> dict[str, Ints]:
        """The states of lanes above: [calls, lanes, i]."""
        so_far, found = self._so_far(site, token), {}
        which = number % max(token.shape[1] - FURTHER_LAG, 1)
        none = np.zeros_like(which)
        for where, lag, of in zip(ABOVE, (none + 1, none + 2, which + FURTHER_LAG), (none, none, which), strict=True):
            found[f"the same position {where}"] = _apart(_down(token, lag), of, self.case.vocabulary)
            found[f"so far {where}"] = _apart(_down(so_far, lag), of, self.case.gamma + SIGNS)
        return found

    def _so_far(self, site: Ints, token: Ints) -> Ints:
        """The length of a lane that ended before a position, else the sign of p - q at its token: [calls, lanes, i]."""
        length = (token >= 0).sum(2)[:, :, None]
        sign = self.sign[site, np.maximum(token, 0)]
        return np.where(length <= np.arange(token.shape[2]), length - 1, self.case.gamma + sign)

    def _coin(self, site: Ints, token: Ints) -> Rows:
        """The bound of a block's one coin, if it has only one, from the tokens that were kept: [calls, lanes, i]."""
        least = np.ones(token.shape)
        odds = self.odds[site[:, :, :-1], np.maximum(token[:, :, :-1], 0)]
        least[:, :, 1:] = np.minimum.accumulate(odds, axis=2)
        return least

    def lanes(self, tokens: NDArray[np.int32], start: int) -> Iterator[tuple[int, ...]]:
        """The number of every lane with what it emitted."""
        lane = self._lane(len(tokens), tokens.shape[1], start)
        for number, row in zip(lane.ravel().tolist(), tokens.reshape(-1, tokens.shape[2]).tolist(), strict=True):
            yield number, *(token for token in row if token >= 0)

    def _lane(self, calls: int, width: int, start: int) -> Ints:
        """[calls, lanes of a call]."""
        if self.lane_of is None:
            return np.broadcast_to(np.arange(width), (calls, width))
        return self.lane_of(start + np.arange(calls))[:, None]

    def _site(self, token: Ints, start: int) -> Ints:
        """The index of (lane, position, context) of every token."""
        calls, width, positions = token.shape
        lane = self._lane(calls, width, start)
        site, context = np.zeros_like(token), np.zeros((calls, width), dtype=np.int64)
        for i in range(positions):
            site[:, :, i] = (lane * positions + i) * self.case.contexts + context
            context = np.asarray(step(context, np.maximum(token[:, :, i], 0), self.case.contexts))
        return site


def _last(rounds: Ints) -> Ints:
    """The last token of every round, -1 where there was none: [calls, lanes, 1]."""
    return np.take_along_axis(rounds, np.maximum((rounds >= 0).sum(2) - 1, 0)[:, :, None], axis=2)


def _apart(states: Ints, which: Ints, count: int) -> Ints:
    """States 0 .. count - 1, others for each lag, `which` [calls]; -1 as it is."""
    return np.where(states < 0, -1, states + count * which[:, None, None])


def _down(states: Ints, lag: Ints) -> Ints:
    """The state of the lane `lag` [calls] above, -1 where there is none: [calls, lanes, i]."""
    row = np.arange(states.shape[1]) - lag[:, None]
    above = np.take_along_axis(states, np.maximum(row, 0)[:, :, None], axis=1)
    return np.where(row[:, :, None] < 0, -1, above)
