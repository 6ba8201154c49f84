"""A round with a given verdict, so that a test can drive a session through any pattern of accepts and rejects."""

import torch
from torch import Tensor

from refengine.decoder.loop import Rule, nodes
from refengine.engine.block import ROOT, Block, Round
from refengine.engine.coins import Coins


def forced(kept: int, token: int) -> Rule:
    """A rule that accepts a path of `kept` nodes, or as far as one goes, and then emits `token`."""

    def rule(p: Tensor, block: Block, coins: Coins) -> Round:
        tokens, parents = nodes(block)
        path: list[int] = []
        while len(path) < kept and (children := [j for j, x in enumerate(parents) if x == (path or [ROOT])[-1]]):
            path.append(children[token % len(children)])
        emitted = torch.tensor([[*(tokens[j] for j in path), token]])
        return Round(emitted, torch.tensor([path], dtype=torch.long), torch.tensor([len(path) + 1]))

    return rule
