"""DSpark (DeepSeek 2025): the block-parallel backbone of DFlash, a sequential Markov head, and a confidence head that
shortens the block. With both heads off it is DeepSpec's form of DFlash. Qwen3 or Gemma 4 layers. Speculators adds to it
what its DFlash has: a draft vocabulary, sliding layers, and a block whose anchor's slot is not drafted from.

Where the paper and the released code differ, the released code is followed: a checkpoint obeys it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.drafters.dspark_schedule import Cut, Load, Threshold
from refengine.decoder.networks.block_backbone import Backbone
from refengine.decoder.networks.block_backbone import Shape as BackboneShape
from refengine.decoder.networks.draft_vocabulary import drafted_tokens, spread
from refengine.decoder.networks.layers import Weights, softcapped, wide
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain
from refengine.engine.block import Block


@dataclass(frozen=True, kw_only=True)
class Shape(BackboneShape):
    """The sizes of the backbone, and the switches of the heads; field names as in config.json.

    shifted  slot i is about position start + i + 1, and the anchor's slot is used; otherwise about start + i
    length   drafted tokens at most; slots beyond them are run and not read
    """

    num_target_layers: int
    markov_rank: int
    markov_head_type: str  # "" where markov_rank is 0
    enable_confidence_head: bool
    confidence_head_with_markov: bool
    draft_vocab_size: int
    shifted: bool
    length: int
    final_logit_softcapping: float | None = None  # of the backbone's logits alone (Gemma 4)


class DSpark:
    """Drafts up to `length` tokens after the anchor.

    tensors    under DeepSpec's names; `d2t` where there is a draft vocabulary: draft token i is the target's i + d2t[i]
    threshold  the block ends before the first position whose confidence is below it; 0 keeps every position
    load       instead of a threshold: the block ends where a batch under this load gains nothing by going on
    markov     False: drafts come from the backbone's logits alone, each slot blind to the drafts before it
    """

    def __init__(
        self,
        shape: Shape,
        tensors: dict[str, Tensor],
        threshold: float = 0.0,
        load: Load | None = None,
        markov: bool = True,
    ) -> None:
        if (threshold > 0 or load) and not shape.enable_confidence_head:
            raise ValueError("a confidence threshold or a load was given, and this checkpoint has no confidence head")
        self.shape, self.threshold, self.w = shape, threshold, Weights(tensors, gemma4=shape.gemma4)
        self.cut: Cut | None = load or (Threshold(threshold) if threshold > 0 else None)
        self.biased = markov and shape.markov_rank > 0
        self.backbone = Backbone(shape, self.w)
        self.taps = shape.taps
        self.targets = drafted_tokens(shape.draft_vocab_size, tensors)

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.backbone.forget()
        self.backbone.extend(passed)

    def propose(self, turn: Turn) -> Block:
        hidden = self.block(turn.prefix[-1], len(turn.prefix) - 1)
        memory = hidden.new_zeros(self.shape.markov_rank)
        if not self.shape.shifted:  # nothing is drafted from the anchor's slot, but a recurrent head has seen it
            _, memory = self.markov(hidden[0], self.before(turn.prefix[-1]), memory)
            hidden = hidden[1:]
        base = self.logits(hidden)
        chain = DrawnChain(turn, like=wide(base).new_empty(self.shape.vocab_size))
        confidences: list[float] = []
        for k in range(self.shape.length):
            before = self.before(chain.newest)
            # Decided before x_k is drawn: a position may never be dropped because of the token that stands there.
            if self.cut is not None:
                confidences.append(float(self.confidence(hidden[k], before)))
                if not self.cut(confidences):
                    break
            bias, memory = self.markov(hidden[k], before, memory)
            if not chain.draw(spread(wide(base[k] + bias), self.targets, self.shape.vocab_size)):
                break
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self.backbone.extend(kept)

    def state(self) -> State:
        return self.backbone.state()

    def restore(self, state: State) -> None:
        self.backbone.restore(state)

    def block(self, anchor: int, start: int) -> Tensor:
        """Hidden states [B, H] of the block that follows `start` context rows."""
        return self.backbone.block(anchor, start)

    def logits(self, hidden: Tensor) -> Tensor:
        """The backbone's own logits [B, Vd], to which the Markov head adds its bias."""
        return softcapped(self.w.linear("lm_head", hidden), self.shape.final_logit_softcapping)

    # --- the heads ---------------------------------------------------------------------------------------------------

    def before(self, token: int) -> Tensor:
        """The Markov embedding [r] of the token before a position; empty where there is no Markov head."""
        if self.shape.markov_rank == 0:
            return self.w["fc.weight"].new_empty(0)
        return self.w["markov_head.markov_w1.weight"][token]

    def markov(self, hidden: Tensor, before: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The bias [Vd] that the token before adds to a slot's base logits, and the memory [r] after it (rnn only)."""
        head = self.w.at("markov_head")
        if not self.biased:
            return hidden.new_zeros(self.shape.draft_vocab_size), memory
        latent = before
        if self.shape.markov_head_type == "gated":
            latent = torch.sigmoid(head.linear("gate_proj", torch.cat((hidden, before)))) * before
        elif self.shape.markov_head_type == "rnn":
            gate, candidate, output = head.linear("joint_proj", torch.cat((memory, before, hidden))).chunk(3)
            memory = torch.sigmoid(gate) * memory + (1 - torch.sigmoid(gate)) * torch.tanh(candidate)
            latent = torch.tanh(output)
        return head.linear("markov_w2", latent), memory

    def confidence(self, hidden: Tensor, before: Tensor) -> Tensor:
        """The predicted probability that the target accepts this slot, from what precedes the slot's token. Scalar."""
        features = torch.cat((hidden, before)) if self.shape.confidence_head_with_markov else hidden
        return torch.sigmoid(wide(self.w.linear("confidence_head.proj", features)[0]))
