"""Medusa's nucleus mode, batched (released code, `sampling='nucleus'`): lossy, although it samples."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from refengine.engine.block import NOTHING, ROOT, Block, Round, row_after
from refengine.engine.coins import Coins
from refengine.engine.path import ancestry, emitted, mark, path_of
from refengine.engine.policy import head
from refengine.exact.rules.nucleus import TOP_P


def nucleus(p: Tensor, block: Block, coins: Coins, top_p: float = float(TOP_P), fast: bool = False) -> Round:
    """Leaves in Medusa's order (last drafted first); ties in length go to the first of them.

    Every leaf draws for itself, at every depth, one token from the top-p filtered row and goes on while it equals the
    candidate; the longest leaf wins. The draw that disagreed is thrown away.
    """
    filtered = p.double().where(head(p.double(), top_p), 0.0)
    there = block.tokens != NOTHING
    best = torch.zeros_like(there)
    for leaf in reversed(range(block.tokens.shape[1])):
        is_leaf = there[:, leaf] & ~(there & (block.parents == leaf)).any(1)
        kept = _agreeing(filtered, block, leaf, is_leaf, coins)
        best = torch.where((kept.sum(1) > best.sum(1))[:, None], kept, best)
    tip = pad(path_of(best), (1, 0), value=ROOT).amax(1)  # parents come before children, so the last is the largest
    row = row_after(filtered, tip)
    return emitted(block, best, row.argmax(-1) if fast else coins.choose(row, ("emit", best.sum(1))))


def _agreeing(filtered: Tensor, block: Block, leaf: int, live: Tensor, coins: Coins) -> Tensor:
    """The nodes towards `leaf` that its own draws agreed with, bool [B, n]; none in lanes where it is no leaf."""
    nodes = path_of(ancestry(block, torch.where(live, leaf, ROOT)))
    kept = torch.zeros_like(nodes, dtype=torch.bool)
    at = torch.full_like(live, ROOT, dtype=torch.int64)
    for depth, node in enumerate(nodes.unbind(1)):
        live = live & (node != NOTHING)
        if not live.any():
            break
        y = coins.choose(row_after(filtered, at), ("agree", depth, leaf))
        live = live & (y == block.tokens.gather(1, node.clamp(min=0)[:, None])[:, 0])
        at = torch.where(live, node, at)
        kept = mark(kept, torch.where(live, node, NOTHING))
    return kept
