"""From what a subject emitted to the draws that evidence counts: the place of each token, and the state of its past.

The past of a token is what came before it: earlier rounds, earlier rows of the same batch, the emitted prefix. The
current draft and the length that the round will have are no part of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from refengine.audit.schedule import Case, step
from refengine.evidence.cells import SMALL
from refengine.evidence.sequential import Draws, Ints

PARITIES = 4


def features(case: Case) -> dict[str, int]:
    """Every feature of the past with its number of states, in a fixed order; tokens are states where they are few."""
    tokens = case.vocabulary if case.vocabulary <= SMALL else 1
    return {
        "the place": 1,
        "the token before": tokens,
        "the first token of the previous round": tokens,
        "the last token of the previous round": tokens,
        "the length of the previous round": case.gamma + 1,
        "the same place of the row above": tokens,
        "the length of the row above": case.gamma + 1,
        "the number of the call": PARITIES,
    }


@dataclass
class Past:
    """Turns blocks of emitted tokens into draws, remembering the last round across blocks."""

    case: Case
    lane_of: Callable[[int], int] | None  # the lane of a call; None where every call takes all lanes
    last: NDArray[np.int32] | None = field(default=None)  # [lanes of a call, gamma + 1]

    def draws(self, tokens: NDArray[np.int32], start: int) -> Draws:
        """tokens int32 [calls, lanes of a call, gamma + 1] padded with -1, calls numbered from `start`."""
        calls = len(tokens)
        token = tokens.astype(np.int64)
        emitted = token >= 0
        shape = token.shape
        before = np.concatenate([np.full_like(token[:, :, :1], -1), token[:, :, :-1]], axis=2)
        previous = self._previous(token)
        length = emitted.sum(2)
        above = np.concatenate([np.full_like(token[:, :1], -1), token[:, :-1]], axis=1)
        above_length = np.concatenate([np.full((calls, 1), 0), length[:, :-1]], axis=1)
        previous_length = (previous >= 0).sum(2)
        last = np.take_along_axis(previous, np.maximum(previous_length - 1, 0)[:, :, None], axis=2)
        known = self.case.vocabulary <= SMALL
        nothing = np.full(shape, -1)
        states = {
            "the place": np.zeros(shape, dtype=np.int64),
            "the token before": before if known else nothing,
            "the first token of the previous round": np.broadcast_to(previous[:, :, :1], shape) if known else nothing,
            "the last token of the previous round": np.broadcast_to(last, shape) if known else nothing,
            "the length of the previous round": np.broadcast_to(previous_length[:, :, None] - 1, shape),
            "the same place of the row above": above if known else nothing,
            "the length of the row above": np.broadcast_to(above_length[:, :, None] - 1, shape),
            "the number of the call": np.broadcast_to(((start + np.arange(calls)) % PARITIES)[:, None, None], shape),
        }
        place = self._place(token, start)
        return Draws(place[emitted], token[emitted], {name: state[emitted] for name, state in states.items()})

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
            lane = np.array([[self.lane_of(start + t)] for t in range(calls)], dtype=np.int64).reshape(calls, 1)
        place, context = np.zeros_like(token), np.zeros((calls, width), dtype=np.int64)
        for i in range(positions):
            place[:, :, i] = (lane * positions + i) * self.case.contexts + context
            context = np.asarray(step(context, np.maximum(token[:, :, i], 0), self.case.contexts))
        return place
