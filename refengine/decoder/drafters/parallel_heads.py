"""Parallel heads on a shared trunk (Gloeckle et al. 2024): n transformer blocks, block k about the token k + 1 ahead.

The target is the checkpoint's own trunk with its next-token block (`layers`); the drafter is the other n - 1 blocks
(`extra_heads`). Each is a full Llama block with attention and a cache of its own over the trunk's output, at the
input's positions; norm and unembedding are shared. Given the prefix the heads' tokens are independent of each other,
so drafting is a product of rows. The release has no verification; the paper verifies greedily.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

from refengine.decoder.networks.layers import Weights, attend, rotate_pairs, wide
from refengine.decoder.protocols import Pass, State, Tokens, Turn, Verdict
from refengine.decoder.rows import DrawnChain
from refengine.engine.block import Block


@dataclass(frozen=True)
class Shape:
    """Sizes; names as in params.json where it has them. n_layers counts the trunk and every head's block."""

    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    ffn_dim: int
    norm_eps: float
    rope_theta: float
    extra_heads: int

    @property
    def target_layers(self) -> int:
        return self.n_layers - self.extra_heads


class ParallelHeads:
    """Drafts one token per extra head. Cache of head k: keys and values of the trunk's rows of prefix[:-1].

    Head k (from 1) at the last of these rows is about the token k + 1 ahead: the anchor is the next-token block's.
    """

    def __init__(self, shape: Shape, tensors: dict[str, Tensor]) -> None:
        self.shape, self.w = shape, Weights(tensors)
        self.taps = (shape.target_layers - 1,)  # what the trunk wrote: the input of the next-token block
        self._forget()

    def start(self, tokens: Tokens, passed: Pass) -> None:
        self._forget()
        self._extend(passed)

    def propose(self, turn: Turn) -> Block:
        chain = DrawnChain(turn)
        for logits in self.heads():
            if not chain.draw(logits):
                break
        return chain.block()

    def commit(self, verdict: Verdict, kept: Pass) -> None:
        self._extend(kept)

    def state(self) -> State:
        layers = enumerate(zip(self.keys, self.values, strict=True))
        caches = {f"kv.{k}.{name}": x for k, kv in layers for name, x in zip("kv", kv, strict=True)}
        return {"trunk": self.trunk, **caches}

    def restore(self, state: State) -> None:
        self.trunk = state["trunk"]
        self.keys = [state[f"kv.{k}.k"] for k in range(self.shape.extra_heads)]
        self.values = [state[f"kv.{k}.v"] for k in range(self.shape.extra_heads)]

    def heads(self) -> Tensor:
        """Logits [n - 1, V] of every extra head at the last cached row."""
        s, position = self.shape, torch.tensor([len(self.keys[0]) - 1], device=self.trunk.device)
        logits = []
        for k in range(s.extra_heads):
            block = self.w.at("extra_heads", k)
            normed = block.norm("attention_norm", self.trunk, s.norm_eps)
            q = rotate_pairs(self._split(block.linear("attention.wq", normed)), position, s.rope_theta)
            seen = attend(q, self.keys[k], self.values[k], (s.dim // s.n_heads) ** -0.5)
            x = self.trunk + block.linear("attention.wo", seen)
            x = x + _feed_forward(block.at("feed_forward"), block.norm("ffn_norm", x, s.norm_eps))
            logits.append(self.w.linear("output", self.w.norm("norm", x, s.norm_eps))[0])
        return wide(torch.stack(logits))

    def _forget(self) -> None:
        s, like = self.shape, self.w["norm.weight"]
        empty = like.new_empty(0, s.n_kv_heads, s.dim // s.n_heads)
        self.trunk = like.new_zeros(1, s.dim)  # the last cached row's
        self.keys = [empty] * s.extra_heads
        self.values = [empty] * s.extra_heads

    def _extend(self, kept: Pass) -> None:
        """Append the rows that the target kept: a head's keys and values need the trunk's output and nothing else."""
        trunk = kept.taps[self.taps[0]]
        for k in range(self.shape.extra_heads):
            block = self.w.at("extra_heads", k)
            normed = block.norm("attention_norm", trunk, self.shape.norm_eps)
            keys = self._split(block.linear("attention.wk", normed))
            keys = rotate_pairs(keys, kept.positions, self.shape.rope_theta)
            values = self._split(block.linear("attention.wv", normed))
            self.keys[k], self.values[k] = torch.cat((self.keys[k], keys)), torch.cat((self.values[k], values))
        self.trunk = trunk[-1:]

    def _split(self, x: Tensor) -> Tensor:
        """[n, heads * d] as [n, heads, d]."""
        return x.view(len(x), -1, self.shape.dim // self.shape.n_heads)


def _feed_forward(w: Weights, x: Tensor) -> Tensor:
    return w.linear("w2", silu(w.linear("w1", x)) * w.linear("w3", x))
