"""EAGLE-3 (Li et al. 2025): features fused from a low, a middle and a high layer, trained on its own outputs.

One network for four released layouts: SafeAILab's (three taps, draft vocabulary), SpecForge's (the same tensors, widths
of heads and angles of its own), DeepSpec's (five taps, whole vocabulary, Qwen3 or Gemma 4 layers) and that of
speculators (its switches, further plain layers). `networks/feature_recurrence.py` holds what it shares with EAGLE-1,
`windows.py` its sliding layers, `eagle_trees.py` how candidates are grown. Positions: row i is at i (SafeAILab,
SpecForge, DeepSpec, vLLM); speculators trains at i + 1, a uniform shift that rotary embeddings cannot see.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.draft_vocabulary import drafted_tokens, spread
from refengine.decoder.networks.feature_recurrence import self_attention
from refengine.decoder.networks.layers import Heads, Weights, after_attention, softcapped
from refengine.decoder.networks.rope import Rope
from refengine.decoder.networks.windows import Window


@dataclass(frozen=True)
class Shape:
    """Sizes and switches of an EAGLE-3 checkpoint; field names as in its config.json where it has them.

    first    name of the first layer, which takes [embedding ; feature]: "midlayer" or "layers.0"
    joined   how many layers, the first ones, take [embedding ; what came in]
    taps     indices of `output_hidden_states` whose features are fused, in the order of `fc`
    window   what rows of the `sliding` layers see
    """

    vocab_size: int
    draft_vocab_size: int
    hidden_size: int
    target_hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: Rope
    first: str
    taps: tuple[int, ...]
    joined: int = 1
    attention_bias: bool = False
    mlp_bias: bool = False
    head_norms: bool = False  # Qwen3 layers: queries and keys normed per head
    norm_before_fc: bool = False  # one norm over all taps side by side
    fc_norm: bool = False  # a norm for each tap
    norm_before_residual: bool = False  # the first layer's residual is the normed feature
    norm_output: bool = False  # EAGLE-3.1: what is fed back is what the head reads
    head_norm: bool = True  # the head reads normed features
    gemma4: bool = False  # Gemma 4 layers and embeddings
    attention_k_eq_v: bool = False  # Gemma 4: values are the projection of the keys
    final_logit_softcapping: float | None = None
    window: Window | None = None
    sliding: tuple[int, ...] = ()


class Eagle3:
    """The network of `refengine.decoder.networks.feature_recurrence.Network`. Tensors under their released names."""

    def __init__(self, shape: Shape, tensors: Mapping[str, Tensor]) -> None:
        self.shape, self.w, self.taps = shape, Weights(tensors, gemma4=shape.gemma4), shape.taps
        self.heads = Heads(shape.num_key_value_heads, shape.head_dim, shape.rope, shape.rms_norm_eps, shape.gemma4)
        self.targets = drafted_tokens(shape.draft_vocab_size, tensors)

    def fused(self, features: Tensor) -> Tensor:
        s, w = self.shape, self.w
        if s.norm_before_fc:
            features = w.norm("input_norm", features, s.rms_norm_eps)
        if s.fc_norm:
            parts = features.chunk(len(self.taps), -1)
            features = torch.cat([w.norm(f"fc_norm.{j}", x, s.rms_norm_eps) for j, x in enumerate(parts)], -1)
        return w.linear("fc", features)

    def rows(
        self, tokens: Tensor, hidden: Tensor, positions: Tensor, past: Cache, sees: Tensor, text: int | None = None
    ) -> tuple[Tensor, Cache]:
        eps, cache, window = self.shape.rms_norm_eps, [], self.shape.window
        near = window.within(sees, positions, sees.shape[1] if text is None else text) if window else sees
        embedded = self.w.embed("embed_tokens", tokens)
        for i, kept in enumerate(past):
            layer = self.w.at("layers", i) if i else self.w.at(self.shape.first)
            if i < self.shape.joined:
                feature = layer.norm("hidden_norm", hidden, eps)
                normed = torch.cat((layer.norm("input_layernorm", embedded, eps), feature), -1)
                hidden = feature if self.shape.norm_before_residual else hidden
            else:
                normed = layer.norm("input_layernorm", hidden, eps)
            seen = near if i in self.shape.sliding else sees
            attended, both = self_attention(layer.at("self_attn"), self.heads, normed, positions, kept, seen)
            cache.append(both)
            hidden = after_attention(layer, hidden, attended, eps)
        if self.shape.norm_output:
            hidden = self.w.norm("norm", hidden, eps)
        return hidden, tuple(cache)

    def logits(self, hidden: Tensor) -> Tensor:
        return spread(self.draft_logits(hidden), self.targets, self.shape.vocab_size)

    def draft_logits(self, hidden: Tensor) -> Tensor:
        """Logits over the draft vocabulary, [n, Vd]."""
        if self.shape.head_norm and not self.shape.norm_output:
            hidden = self.w.norm("norm", hidden, self.shape.rms_norm_eps)
        return softcapped(self.w.linear("lm_head", hidden), self.shape.final_logit_softcapping)

    def empty(self) -> Cache:
        return tuple(self.heads.empty(self.w["fc.weight"]) for _ in range(self.shape.num_hidden_layers))
