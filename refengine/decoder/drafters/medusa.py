"""Medusa (Cai et al. 2024): heads on the target's last hidden state, their likeliest tokens as one sparse tree.

Head i (from 0) at position t is about the token at t + i + 2: the target's own head says t + 1, the anchor, and the
first level of the tree follows it. All heads read one hidden state, so a level's candidates do not depend on the token
above them and the tree is a pruned product. Candidates are deterministic: `point_mass` judges them without loss; the
released modes are `greedy`, `typical` and `nucleus`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

from refengine.decoder.drafters.medusa_trees import Path, ordered
from refengine.decoder.networks.layers import Weights, wide
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import point_block
from refengine.engine.block import ROOT, Block


@dataclass(frozen=True)
class Shape:
    """heads and residual layers of each, and what they are heads of: vocabulary V, width H, L target layers."""

    heads: int
    layers: int
    vocab_size: int
    hidden_size: int
    num_target_layers: int


class Medusa:
    """Drafts a tree of the heads' likeliest tokens. Live state: the hidden state of the last row of prefix[:-1].

    tensors  as in Medusa-1's file: `{head}.{layer}.linear.weight|bias`, `{head}.{layers}.weight`
    tree     paths of candidate numbers; a node whose head or candidate does not exist is left out
    """

    def __init__(self, shape: Shape, tensors: dict[str, Tensor], tree: Sequence[Path]) -> None:
        self.shape, self.w = shape, Weights(tensors)
        self.tree = ordered({path for path in tree if len(path) <= shape.heads and max(path) < shape.vocab_size})
        place = {path: node for node, path in enumerate(self.tree)}
        self.parents = tuple(place.get(path[:-1], ROOT) for path in self.tree)
        self.taps = (shape.num_target_layers,)  # after the final norm: what the target's own head reads
        self.hidden = next(iter(tensors.values())).new_empty(0)

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self.hidden = passed.taps[self.taps[0]][-1]

    def propose(self, turn: Turn) -> Block:
        # Stable, so that equal logits go to the lowest id on every machine.
        ranked = self.heads(self.hidden).sort(dim=-1, descending=True, stable=True).indices.tolist()
        tokens = tuple(ranked[len(path) - 1][path[-1]] for path in self.tree)
        return point_block(tokens, self.parents, self.hidden.device)

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self.hidden = kept.taps[self.taps[0]][-1]

    def state(self) -> State:
        return {"hidden": self.hidden}

    def restore(self, state: State) -> None:
        self.hidden = state["hidden"]

    def heads(self, hidden: Tensor) -> Tensor:
        """Logits [heads, ..., V] of hidden states [..., H]: residual blocks x + silu(W x + b), then the head's U."""
        logits = []
        for i in range(self.shape.heads):
            x = hidden
            for j in range(self.shape.layers):
                x = x + silu(self.w.at(i, j).linear("linear", x))
            logits.append(wide(self.w.at(i).linear(str(self.shape.layers), x)))
        return torch.stack(logits)
