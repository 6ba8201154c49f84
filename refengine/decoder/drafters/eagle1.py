"""EAGLE-1 (Li et al. 2024): one decoder layer predicts the target's next top feature; the target's own head reads it.

EAGLE-2 (Li et al. 2024) has the same weights and grows another tree. `networks/feature_recurrence.py` holds what both
share with EAGLE-3, `eagle_trees.py` EAGLE-1's static tree (drawn without replacement) and EAGLE-2's dynamic one
(deterministic). Token and feature are joined before any norm, the first layer norms nothing on its way in, and there is
no final norm.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.feature_recurrence import self_attention
from refengine.decoder.networks.layers import Heads, Weights, after_attention
from refengine.decoder.networks.rope import Rope


@dataclass(frozen=True)
class Shape:
    """The sizes of an EAGLE-1 checkpoint; field names as in its config.json.

    bias      whether `fc` has a bias: the code's default where the config does not say
    qkv_bias  whether the projections of the attention have one (Qwen2 drafters)
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    rms_norm_eps: float
    rope: Rope
    bias: bool
    qkv_bias: bool
    num_target_layers: int  # of the target; not in the config

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


class Eagle1:
    """The network of `refengine.decoder.networks.feature_recurrence.Network`.

    tensors  as in the file, and the target's `embed_tokens.weight` and `lm_head.weight` where the file leaves them out
    """

    def __init__(self, shape: Shape, tensors: Mapping[str, Tensor]) -> None:
        self.shape, self.w = shape, Weights(tensors)
        self.taps = (shape.num_target_layers,)  # after the final norm: what the target's own head reads
        self.heads = Heads(shape.num_key_value_heads, shape.head_dim, shape.rope, shape.rms_norm_eps)

    def fused(self, features: Tensor) -> Tensor:
        return features

    def rows(
        self, tokens: Tensor, hidden: Tensor, positions: Tensor, past: Cache, sees: Tensor, text: int | None = None
    ) -> tuple[Tensor, Cache]:
        eps, cache = self.shape.rms_norm_eps, []
        hidden = self.w.linear("fc", torch.cat((self.w.embed("embed_tokens", tokens), hidden), -1))
        for i, kept in enumerate(past):
            layer = self.w.at("layers", i)
            normed = layer.norm("input_layernorm", hidden, eps) if i else hidden
            attended, both = self_attention(layer.at("self_attn"), self.heads, normed, positions, kept, sees)
            cache.append(both)
            hidden = after_attention(layer, hidden, attended, eps)
        return hidden, tuple(cache)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.w.linear("lm_head", hidden)

    def empty(self) -> Cache:
        return tuple(self.heads.empty(self.w["fc.weight"]) for _ in range(self.shape.num_hidden_layers))
