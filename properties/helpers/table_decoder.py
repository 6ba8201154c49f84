"""The decoder's loop on tables: a target and a drafter behind its protocols, of which every row can be looked up.

The target makes no use of what the loop says about positions and sight but to check it: a row that sees other rows than
its path, or stands elsewhere than behind them, is an error.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from refengine.decoder.networks.cache import causal
from refengine.decoder.protocols import Pass, Rows, State, Tokens, Turn, Verdict
from refengine.decoder.rows import point_block
from refengine.engine.block import ROOT, Block
from refengine.exact.block import Target as Table
from refengine.strategies import World


def logits(row: Any) -> Tensor:
    return torch.tensor([float(x) for x in row], dtype=torch.float64).log()


class TableTarget:
    """Row i says what the table says after the tokens that row i sees."""

    width, layers, lends = 1, 1, None
    dtype, device = torch.float64, torch.device("cpu")

    def __init__(self, table: Table, vocabulary: int) -> None:
        self.table, self.vocabulary = table, vocabulary
        self.reset()

    def reset(self) -> None:
        self.kept: Tokens = ()
        self.tentative: Tokens = ()

    def run(self, rows: Rows, taps: Sequence[int] = ()) -> Pass:
        new = tuple(rows.tokens.tolist())
        old = len(self.tentative)
        self.tentative += new
        sees = causal(len(new), old, self.device) if rows.visible is None else rows.visible
        found = []
        for seen, position in zip(sees, rows.positions.tolist(), strict=True):
            path = self.kept + tuple(self.tentative[row] for row in seen.nonzero()[:, 0].tolist())
            if position != len(path) - 1:
                raise AssertionError(f"a row behind {path} stands at position {position}")
            found.append(logits(self.table(path)))
        return Pass(rows.tokens, rows.positions, torch.stack(found), dict.fromkeys(taps, rows.positions[:, None]))

    def keep(self, rows: Sequence[int]) -> None:
        self.kept, self.tentative = self.kept + tuple(self.tentative[row] for row in rows), ()

    def kv(self, layer: int) -> tuple[Tensor, Tensor]:
        raise AssertionError("a table has no keys")

    def state(self) -> State:
        return {"kept": self.kept, "tentative": self.tentative}

    def restore(self, state: State) -> None:
        self.kept, self.tentative = state["kept"], state["tentative"]


class TableDrafter:
    """Draws as a world's drafter does, through the policy, and remembers which rows were kept."""

    taps: tuple[int, ...] = (0,)

    def __init__(self, world: World, vocabulary: int) -> None:
        self.world, self.vocabulary = world, vocabulary

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.kept = tokens

    def propose(self, turn: Turn) -> Block:
        if self.world.drawn is None:
            return point_block(*self.world.given, torch.device("cpu"))
        tokens, parents, q, level = list[int](), list[int](), list[Tensor](), [(ROOT, ())]
        for depth, width in enumerate(self.world.where):
            following: list[tuple[int, Tokens]] = []
            for parent, path in level:
                row = turn.row(logits(self.world.draft_row(turn.prefix + path)), path)
                left = row.clone()
                for _ in range(width):
                    if not bool(left.any()):
                        break
                    following.append((len(tokens), (*path, turn.draw(left, ("draft", depth, len(tokens))))))
                    tokens.append(following[-1][1][-1])
                    parents.append(parent)
                    q.append(row)
                    if self.world.drawn == "distinct":
                        left = left.index_fill(0, torch.tensor([tokens[-1]]), 0.0)
            level = following
        ids, above = (torch.tensor(x, dtype=torch.long)[None] for x in (tokens, parents))
        rows = torch.stack(q) if q else torch.empty(0, self.vocabulary, dtype=torch.float64)
        return Block(ids, above, rows[None])

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        old, self.kept = len(self.kept), self.kept + tuple(kept.tokens.tolist())
        for place, (said, row, tap) in enumerate(zip(kept.positions, kept.logits, kept.taps[0], strict=True), old):
            if not (said == tap == place and torch.equal(row, logits(self.world.target(self.kept[: place + 1])))):
                raise AssertionError(f"another row was handed over as that of place {place}")

    def state(self) -> State:
        return {"kept": self.kept}

    def restore(self, state: State) -> None:
        self.kept = state["kept"]
