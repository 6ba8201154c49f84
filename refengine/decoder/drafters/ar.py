"""A separate draft model: a smaller causal LM with the target's vocabulary (Leviathan et al. 2023; Chen et al. 2023).

The draft model is held behind the same protocol as the target, so its rows and their rollback are the target's.
"""

from refengine.decoder.protocols import Pass, State, Target, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain, chain_rows
from refengine.engine.block import Block


class AR:
    """Drafts gamma tokens one by one with its own model. Cache between rounds: the rows of prefix[:-1]."""

    taps: tuple[int, ...] = ()

    def __init__(self, model: Target, gamma: int) -> None:
        if gamma < 1:
            raise ValueError(f"gamma is the number of drafted tokens, at least 1, got {gamma}")
        self.model = model
        self.gamma = gamma
        self.length = 0  # rows kept: the position of the anchor
        self.drafted: Tokens = ()

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.model.reset()
        self.model.run(chain_rows(tokens, 0, self.model.device, judged=1))
        self.model.keep(range(len(tokens)))
        self.length, self.drafted = len(tokens), ()

    def propose(self, turn: Turn) -> Block:
        chain = DrawnChain(turn)
        for depth in range(self.gamma):
            rows = chain_rows((chain.newest,), self.length + depth, self.model.device)
            if not chain.draw(self.model.run(rows).logits[-1]):
                break
        self.drafted = chain.path
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        accepted = len(verdict.path)
        if accepted == self.gamma:  # the last draft was proposed but never run
            self.model.run(chain_rows(self.drafted[-1:], self.length + self.gamma, self.model.device))
        self.model.keep(range(accepted + 1))  # the anchor and the accepted drafts
        self.length += accepted + 1
        self.drafted = ()

    def state(self) -> State:
        return {"length": self.length, "drafted": self.drafted, **self.model.state()}

    def restore(self, state: State) -> None:
        own = dict(state)
        self.length, self.drafted = own.pop("length"), own.pop("drafted")
        self.model.restore(own)
