"""The multi-token prediction module of Qwen3-Next and Qwen3.5: one decoder layer that the target's checkpoint carries.

A row joins the normed embedding of a token with the normed hidden state of the position before it, embedding first, and
runs the pair through a layer of the target's own full-attention kind, with a cache of its own. Embedding and head are
the target's. It drafts one token, or several by recursion (FastMTP 2025 trains it for that): what the final norm puts
out takes the place of the hidden state, one position on. So it is a recurrence over features, and
`networks/feature_recurrence.py` is its loop: drafted rows attend to the rows before them, as vLLM runs it. (speculators
trains each step on rows of that step alone, which differs from the second drafted token on.)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import sigmoid

from refengine.decoder.networks.cache import Cache
from refengine.decoder.networks.experts import weighted
from refengine.decoder.networks.layers import Weights, attend, gated_mlp, rms, rotate, wide


@dataclass(frozen=True)
class Experts:
    """Sizes of a mixture of experts; names as in config.json."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int
    norm_topk_prob: bool


@dataclass(frozen=True)
class Shape:
    """Sizes of the module, which are the target's; names as in config.json.

    rotary             how many of a head's numbers turn with the position, the first ones
    num_hidden_layers  of the target: its last hidden state, after the final norm, is what comes in
    mlp                the width of a dense MLP, or the experts
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rotary: int
    rope_theta: float
    rms_norm_eps: float
    attention_bias: bool
    mlp: int | Experts


class QwenMTP:
    """The network of `refengine.decoder.networks.feature_recurrence.Network`.

    tensors  named as after the `mtp.` of the file, experts apart from each other, and `embed_tokens.weight` and
             `lm_head.weight` of the target
    """

    def __init__(self, shape: Shape, tensors: Mapping[str, Tensor]) -> None:
        self.shape, self.w = shape, Weights(tensors)
        self.taps = (shape.num_hidden_layers,)

    def fused(self, features: Tensor) -> Tensor:
        return features

    def rows(
        self, tokens: Tensor, hidden: Tensor, positions: Tensor, past: Cache, sees: Tensor, text: int | None = None
    ) -> tuple[Tensor, Cache]:
        s, w, eps = self.shape, self.w, self.shape.rms_norm_eps
        embedded = centred_norm(w, "pre_fc_norm_embedding", w.embed("embed_tokens", tokens), eps)
        x = w.linear("fc", torch.cat((embedded, centred_norm(w, "pre_fc_norm_hidden", hidden, eps)), -1))
        layer = w.at("layers", 0)
        normed = centred_norm(layer, "input_layernorm", x, eps)
        attended, cache = gated_attention(layer.at("self_attn"), s, normed, positions, past[0], sees)
        x = x + attended
        normed = centred_norm(layer, "post_attention_layernorm", x, eps)
        mlp = layer.at("mlp")
        x = x + (mixture(mlp, s.mlp, normed) if isinstance(s.mlp, Experts) else gated_mlp(mlp, normed))
        return centred_norm(w, "norm", x, eps), (cache,)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.w.linear("lm_head", hidden)

    def empty(self) -> Cache:
        nothing = self.w["fc.weight"].new_empty(0, self.shape.num_key_value_heads, self.shape.head_dim)
        return ((nothing, nothing),)


def centred_norm(w: Weights, name: str, x: Tensor, eps: float) -> Tensor:
    """RMSNorm whose stored weight is the scale's distance from 1."""
    return ((1 + wide(w[f"{name}.weight"])) * rms(wide(x), eps)).to(x.dtype)


def gated_attention(
    w: Weights, s: Shape, x: Tensor, positions: Tensor, past: tuple[Tensor, Tensor], sees: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Attention of rows x [n, H] over `past` and themselves; returns [n, H] and keys and values with the rows in them.

    q_proj puts out a query and a gate for each head, side by side; the gate closes what its head has read.
    """
    query, gate = w.linear("q_proj", x).view(len(x), s.num_attention_heads, 2 * s.head_dim).chunk(2, -1)
    key, value = (w.linear(f"{y}_proj", x).view(len(x), s.num_key_value_heads, s.head_dim) for y in "kv")

    def rotated(name: str, y: Tensor) -> Tensor:
        y = centred_norm(w, name, y, s.rms_norm_eps)
        return torch.cat((rotate(y[..., : s.rotary], positions, s.rope_theta), y[..., s.rotary :]), -1)

    k, v = torch.cat((past[0], rotated("k_norm", key))), torch.cat((past[1], value))
    read = attend(rotated("q_norm", query), k, v, s.head_dim**-0.5, sees)
    return w.linear("o_proj", read * sigmoid(gate.flatten(1))), (k, v)


def mixture(w: Weights, s: Experts, x: Tensor) -> Tensor:
    """The likeliest experts of each row x [n, H], weighted, and a shared one behind a gate of its own: [n, H]."""
    probabilities = wide(w.linear("gate", x)).softmax(-1)
    weights, chosen = probabilities.topk(s.num_experts_per_tok, -1)
    if s.norm_topk_prob:
        weights = weights / weights.sum(-1, keepdim=True)
    out = weighted(w.at("experts"), chosen, weights.to(x.dtype), x)
    return out + sigmoid(w.linear("shared_expert_gate", x)) * gated_mlp(w.at("shared_expert"), x)
