"""Coins for tests: one request's own, and those that give back what a recording of the official code decided."""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.engine.coins import Philox, Site, accept_below
from refengine.exact.chance import DEPTHS

COINS = Philox(5, torch.tensor([0]))


@dataclass
class Recorded:
    """The decisions of one official round: drafted tokens and uniforms by depth, and the token that was emitted."""

    drafts: list[int]
    uniforms: list[float]
    emitted: int

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        u = self.uniforms[int(site[1]) % DEPTHS]
        return accept_below(torch.tensor([u], dtype=torch.float64), num, den)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        return torch.tensor([self.drafts[int(site[1]) % DEPTHS] if site[0] == "draft" else self.emitted])


@dataclass
class InOrder:
    """The uniforms of one official round in the order they were used, and the token that the round drew last."""

    uniforms: list[float]
    emitted: int
    weights: Tensor | None = None  # what the last token was drawn from

    def accept(self, num: Tensor, den: Tensor, site: Site) -> Tensor:
        return accept_below(torch.tensor([self.uniforms.pop(0)], dtype=torch.float64), num, den)

    def choose(self, weights: Tensor, site: Site) -> Tensor:
        self.weights = weights[0] / weights[0].sum()
        return torch.tensor([self.emitted])
