"""DFlash (z-lab 2026): block diffusion in a single step. All mask slots of a block are filled at once and none sees
another's token, so the rows of a block are independent given the prefix.

Releases differ in what a slot is about. Unshifted (z-lab, transformers, speculators): slot i is about its own position,
and the anchor's slot says nothing. Shifted (speculators with `sample_from_anchor`; DeepSpec's, which `dspark.py` runs
with its heads off): slot i is about the position after it. `networks/block_backbone.py` holds everything up to the
hidden states.
"""

from dataclasses import dataclass

from torch import Tensor

from refengine.decoder.networks.block_backbone import Backbone
from refengine.decoder.networks.block_backbone import Shape as BackboneShape
from refengine.decoder.networks.draft_vocabulary import drafted_tokens, spread
from refengine.decoder.networks.layers import Weights, wide
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain, point_block
from refengine.engine.block import Block


@dataclass(frozen=True, kw_only=True)
class Shape(BackboneShape):
    """The sizes of the backbone, and how its slots become drafts.

    shifted  slot i is about position start + i + 1, and the anchor's slot is used
    length   drafted tokens; slots beyond them are run and not read
    """

    draft_vocab_size: int
    shifted: bool
    length: int


class DFlash:
    """Drafts a chain of `length` tokens.

    tensors  under z-lab's names, and `embed_tokens.weight`, `lm_head.weight`: the target's where the file has none.
             `d2t` where there is a draft vocabulary: draft token i is the target's token i + d2t[i]
    greedy   as z-lab releases it: the likeliest token of each slot at any temperature. Nothing is drawn then, and
             `point_mass` judges the chain. Otherwise tokens are drawn from the rows, which are reported as q
    """

    def __init__(self, shape: Shape, tensors: dict[str, Tensor], greedy: bool) -> None:
        self.shape, self.greedy, self.w = shape, greedy, Weights(tensors)
        self.backbone, self.taps = Backbone(shape, self.w), shape.taps
        self.targets = drafted_tokens(shape.draft_vocab_size, tensors)

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.backbone.forget()
        self.backbone.extend(passed)

    def propose(self, turn: Turn) -> Block:
        rows = wide(self.rows(turn.prefix[-1], len(turn.prefix) - 1))
        if self.greedy:
            likeliest = rows.sort(dim=-1, descending=True, stable=True).indices[:, 0]  # ties go to the lowest id
            return point_block(tuple(likeliest.tolist()), tuple(range(-1, len(rows) - 1)), rows.device)
        chain = DrawnChain(turn)
        for logits in rows:
            if not chain.draw(logits):
                break
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self.backbone.extend(kept)

    def state(self) -> State:
        return self.backbone.state()

    def restore(self, state: State) -> None:
        self.backbone.restore(state)

    def rows(self, anchor: int, start: int) -> Tensor:
        """Logits [length, V] over the target's vocabulary; -inf for tokens that cannot be drafted."""
        first = 0 if self.shape.shifted else 1
        hidden = self.backbone.block(anchor, start)[first : first + self.shape.length]
        return spread(self.w.linear("lm_head", hidden), self.targets, self.shape.vocab_size)
