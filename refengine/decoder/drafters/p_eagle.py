"""P-EAGLE (parallel EAGLE, 2026): EAGLE-3's network drafts a whole chain in one pass, from mask slots.

Behind the anchor's row stand `length - 1` slots: the mask token's embedding beside one learned feature, the same at
every depth, that goes through `fc` like a target's. Attention is causal, so slot j sees the slots before it, but no
drafted token: the rows are independent given the prefix. Slots never enter the cache; accepted tokens come again as
real rows beside the target's features.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.networks.feature_recurrence import Draft
from refengine.decoder.networks.layers import wide
from refengine.decoder.protocols import Turn
from refengine.decoder.rows import DrawnChain
from refengine.engine.block import Block


@dataclass(frozen=True)
class MaskSlots:
    """A plan for `FeatureRecurrence`: `length` tokens, each drawn from its slot's row. For `leviathan` and `block`.

    token    the mask token
    feature  the mask's, [1, F], as the checkpoint has it

    Engines draft by argmax; drawn from the reported rows the chain is as lossless, and its acceptance is the overlap.
    """

    length: int
    token: int
    feature: Tensor

    def __call__(self, draft: Draft, turn: Turn) -> Block:
        chain = DrawnChain(turn)
        for logits in wide(self.rows(draft, self.length - 1)):
            if not chain.draw(logits):
                break
        return chain.block()

    def rows(self, draft: Draft, slots: int) -> Tensor:
        """Logits [1 + slots, V]: the anchor's, and those of so many slots behind it."""
        hidden = draft.network.fused(self.feature).expand(slots, -1)
        return torch.cat((draft.first[None], draft.append([self.token] * slots, hidden)))
