"""Building what goes in and out of a pass: rows of a chain or a tree for the target, and one-lane blocks."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from refengine.decoder.protocols import Rows, Tokens, Turn
from refengine.engine.block import ROOT, Block
from refengine.exact.chance import Site


def chain_rows(tokens: Sequence[int], start: int, device: torch.device, judged: int | None = None) -> Rows:
    """Rows in which each follows the one before; tokens[0] is at position `start`."""
    positions = torch.arange(start, start + len(tokens), device=device)
    return Rows(torch.tensor(tokens, device=device), positions, judged=judged)


def tree_rows(anchor: int, tokens: Tokens, parents: Tokens, start: int, device: torch.device) -> Rows:
    """The anchor at position `start` and every node of a tree after it: row j + 1 is node j and sees its ancestors."""
    if parents == tuple(range(ROOT, len(tokens) - 1)):
        return chain_rows((anchor, *tokens), start, device)
    count = len(tokens) + 1
    visible = np.eye(count, dtype=np.bool_)
    depth = [0] * count
    for row, parent in enumerate(parents, 1):
        above = 0 if parent == ROOT else parent + 1
        visible[row] |= visible[above]
        depth[row] = depth[above] + 1
    positions = torch.tensor(depth, device=device) + start
    return Rows(torch.tensor((anchor, *tokens), device=device), positions, torch.from_numpy(visible).to(device))


class DrawnChain:
    """A chain that is drawn token by token, each from the row that is reported as its q: the q-contract, in one place.

    path  the tokens so far
    q     the row [V] that each was drawn from
    like  the last row that was looked at, drawn from or not. Given first by who may look at none: it has V, dtype and
          device of an empty chain
    """

    def __init__(self, turn: Turn, like: Tensor | None = None) -> None:
        self.turn, self.like = turn, like
        self.path: Tokens = ()
        self.q: list[Tensor] = []

    @property
    def newest(self) -> int:
        """The last token that was drawn; the anchor before any was."""
        return self.path[-1] if self.path else self.turn.prefix[-1]

    def draw(self, logits: Tensor) -> bool:
        """Draw the next token from the row that the policy makes of logits [V].

        False where the policy leaves nothing of that row. Nothing is drawn then, and the chain ends: what was seen is
        what precedes the place, so the chain may be shorter without a change of law.
        """
        self.like = self.turn.row(logits, self.path)
        if bool(self.like.amax() == 0):  # rows are not negative
            return False
        self.q.append(self.like)
        self.path = (*self.path, self.turn.draw(self.q[-1], ("draft", len(self.path))))
        return True

    def block(self) -> Block:
        """The chain as a block, which may be empty."""
        if self.like is None:
            raise ValueError("no row was looked at and none was given, so this chain has no vocabulary")
        sites = [("draft", depth) for depth in range(len(self.path))]
        return chain_block(self.path, self.q, sites, self.like)


def chain_block(tokens: Sequence[int], q: Sequence[Tensor], sites: Sequence[Site], like: Tensor) -> Block:
    """A one-lane chain of drawn tokens; `like` gives V, dtype and device where nothing was drafted."""
    rows = torch.stack(list(q)) if q else like.new_empty(0, like.shape[-1])
    ids = torch.tensor(list(tokens), dtype=torch.long, device=like.device)
    return Block(ids[None], torch.arange(-1, len(tokens) - 1, device=like.device)[None], rows[None], tuple(sites))


def point_block(tokens: Tokens, parents: Tokens, device: torch.device) -> Block:
    """A one-lane block of deterministic candidates: nothing was drawn, so there is no q."""
    ids, above = (torch.tensor(list(x), dtype=torch.long, device=device) for x in (tokens, parents))
    return Block(ids[None], above[None], None)


def depth(block: Block) -> int:
    """The length of the longest path of a one-lane block."""
    depths = [0]  # of the root, then of each node
    for parent in block.parents[0].tolist():
        depths.append(depths[parent + 1] + 1)
    return max(depths)
