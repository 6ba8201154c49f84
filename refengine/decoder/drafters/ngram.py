"""An n-gram cache: which token followed the last n - 1 tokens most recently. No weights.

Some texts present this as "lookahead decoding"; it has no Jacobi window and only one guess (see `lookahead.py` for what
was released under that name), and they give no verification: here `point_mass` judges the draft.
"""

import torch

from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import point_block
from refengine.engine.block import Block


class NGram:
    """Drafts up to gamma tokens. The table is a function of the prefix: a later n-gram overwrites an earlier one."""

    taps: tuple[int, ...] = ()

    def __init__(self, gamma: int = 5, n: int = 3, device: str = "cpu") -> None:
        if gamma < 1 or n < 2:
            raise ValueError(f"gamma is at least 1 and n at least 2, got {gamma} and {n}")
        self.gamma, self.n, self.device = gamma, n, torch.device(device)
        self.table: dict[Tokens, int] = {}
        self.last: Tokens = ()  # the last n - 1 tokens that were learned from

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.table, self.last = {}, ()
        self._learn(tokens)

    def propose(self, turn: Turn) -> Block:
        self._learn(turn.prefix[-1:])  # the anchor stays, whatever becomes of the draft
        drafted: Tokens = ()
        for _ in range(self.gamma):
            token = self.table.get((self.last + drafted)[1 - self.n :])
            if token is None:
                break
            drafted = (*drafted, token)
        return point_block(drafted, tuple(range(-1, len(drafted) - 1)), self.device)

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self._learn(tuple(kept.tokens[1:].tolist()))

    def state(self) -> State:
        return {"table": tuple(sorted(self.table.items())), "last": self.last}

    def restore(self, state: State) -> None:
        self.table, self.last = dict(state["table"]), state["last"]

    def _learn(self, tokens: Tokens) -> None:
        for token in tokens:
            if len(self.last) == self.n - 1:
                self.table[self.last] = token
            self.last = (*self.last, token)[1 - self.n :]
