"""What DFlash and DSpark share: a block of mask slots, run in one pass beside what the target's layers said.

The target's hidden states of a row are fused into one context row C = norm(fc(taps side by side)). Every layer makes
keys and values of its own of this same C, as it does of the block's rows; queries come from the block alone. Context
rows are never updated by a layer, so their keys and values can be cached. Block rows never enter the cache.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.networks.cache import Cache, append, restore, state
from refengine.decoder.networks.layers import Heads, Weights, after_attention, attend
from refengine.decoder.networks.rope import Rope
from refengine.decoder.networks.windows import Window
from refengine.decoder.protocols import Pass, State


@dataclass(frozen=True)
class Shape:
    """The sizes of a backbone; field names as in a config.json where it has them.

    taps     indices of `output_hidden_states`, in the order of `fc`
    windows  one for each layer; None where a layer's rows see the whole context and the whole block
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    attention_bias: bool
    rms_norm_eps: float
    rope: Rope
    taps: tuple[int, ...]
    block_size: int
    mask_token_id: int
    windows: tuple[Window | None, ...]
    gemma4: bool = False  # Gemma 4 layers and embeddings
    attention_k_eq_v: bool = False  # Gemma 4: values are the projection of the keys


class Backbone:
    """The layers and their cache: keys and values of the context rows, one for each token of prefix[:-1]."""

    def __init__(self, shape: Shape, weights: Weights) -> None:
        self.shape, self.w = shape, weights
        self.heads = Heads(shape.num_key_value_heads, shape.head_dim, shape.rope, shape.rms_norm_eps, shape.gemma4)
        self.forget()

    def forget(self) -> None:
        self.cache: Cache = (self.heads.empty(self.w["fc.weight"]),) * self.shape.num_hidden_layers

    def context(self, kept: Pass) -> Tensor:
        """The fused context rows C [n, H]."""
        features = torch.cat([kept.taps[j] for j in self.shape.taps], -1)
        return self.w.norm("hidden_norm", self.w.linear("fc", features), self.shape.rms_norm_eps)

    def extend(self, kept: Pass) -> None:
        """Append the rows that the target has kept. Nothing is ever rolled back."""
        context = self.context(kept)
        layers = (self.w.at("layers", i, "self_attn") for i in range(self.shape.num_hidden_layers))
        new = (self.heads.keys_and_values(layer, context, kept.positions) for layer in layers)
        self.cache = tuple(append(pair, added) for pair, added in zip(self.cache, new, strict=True))

    def block(self, anchor: int, start: int) -> Tensor:
        """Hidden states [B, H] of the block [anchor, MASK, MASK, ...] at positions start, start + 1, ..."""
        s, device = self.shape, self.w["fc.weight"].device
        tokens = torch.tensor([anchor] + [s.mask_token_id] * (s.block_size - 1), device=device)
        positions = torch.arange(start, start + s.block_size, device=device)
        hidden = self.w.embed("embed_tokens", tokens)
        for i, pair in enumerate(self.cache):
            layer, window = self.w.at("layers", i), s.windows[i]
            attention = layer.at("self_attn")
            normed = layer.norm("input_layernorm", hidden, s.rms_norm_eps)
            k, v = append(pair, self.heads.keys_and_values(attention, normed, positions))
            sees = window.block(len(pair[0]), s.block_size, device) if window else None
            attended = attend(self.heads.queries(attention, normed, positions), k, v, self.heads.scale, sees)
            hidden = after_attention(layer, hidden, attention.linear("o_proj", attended), s.rms_norm_eps)
        return self.w.norm("norm", hidden, s.rms_norm_eps)

    def state(self) -> State:
        return state(self.cache)

    def restore(self, state: State) -> None:
        self.cache = restore(state)
