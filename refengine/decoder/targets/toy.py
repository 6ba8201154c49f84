"""A toy target and a toy drafter that need no network, small enough to work out by hand.

The target's hidden state of a row is the sum of the embeddings of all rows it sees, weighted by decay^distance: a stale
row, a wrong position and a wrong mask each change it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from refengine.decoder.networks.cache import causal
from refengine.decoder.protocols import Pass, Rows, State, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain
from refengine.engine.block import Block


class ToyTarget:
    """hs[0] = embedding [V, H]; hs[1] = sum over visible rows of decay^distance * embedding; logits = hs[1] @ head."""

    width, layers = 4, 1
    dtype = torch.float64
    device = torch.device("cpu")
    lends = None

    def __init__(self, vocabulary: int, seed: int = 0, decay: float = 0.5) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.vocabulary, self.decay = vocabulary, decay
        self.embedding = torch.randn(vocabulary, 4, generator=generator, dtype=self.dtype)
        self.head = torch.randn(4, vocabulary, generator=generator, dtype=self.dtype)
        self.reset()

    def reset(self) -> None:
        self.tokens = torch.empty(0, dtype=torch.long)
        self.positions = torch.empty(0, dtype=torch.long)
        self.kept = 0

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        new, old = len(rows.tokens), len(self.tokens) - self.kept
        visible = causal(new, old, self.device) if rows.visible is None else rows.visible
        sees = torch.cat((torch.ones(new, self.kept).bool(), visible), -1)
        self.tokens = torch.cat((self.tokens, rows.tokens))
        self.positions = torch.cat((self.positions, rows.positions))
        distance = rows.positions[:, None] - self.positions[None, :]
        hidden = (sees * self.decay**distance).to(self.dtype) @ self.embedding[self.tokens]
        states = {0: self.embedding[rows.tokens], 1: hidden}
        return Pass(rows.tokens, rows.positions, hidden @ self.head, {j: states[j] for j in taps})

    def keep(self, rows: Sequence[int]) -> None:
        index = torch.tensor([*range(self.kept), *(self.kept + row for row in rows)])
        self.tokens, self.positions = self.tokens[index], self.positions[index]
        self.kept = len(index)

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        raise ValueError("the toy target has no attention layers")

    def state(self) -> State:
        return {"tokens": self.tokens, "positions": self.positions, "kept": self.kept}

    def restore(self, state: State) -> None:
        self.tokens, self.positions, self.kept = state["tokens"], state["positions"], state["kept"]


class ToyDrafter:
    """Drafts from the feature of the last kept row and the token before: q logits = feature @ head + table[token]."""

    taps = (1,)

    def __init__(self, target: ToyTarget, gamma: int, seed: int = 1) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.head, self.gamma = target.head, gamma
        self.table = torch.randn(target.vocabulary, target.vocabulary, generator=generator, dtype=target.dtype)

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.feature = passed.taps[1][-1]

    def propose(self, turn: Turn) -> Block:
        chain = DrawnChain(turn)
        for _ in range(self.gamma):
            if not chain.draw(self.feature @ self.head + self.table[chain.newest]):
                break
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self.feature = kept.taps[1][-1]

    def state(self) -> State:
        return {"feature": self.feature}

    def restore(self, state: State) -> None:
        self.feature = state["feature"]
