"""The building blocks that drafters share: functions of tensors, and of weights under their released names.

Shapes: rows n, hidden H, heads A, key/value heads G, head width d. A computation that models do "in float32" (norms,
angles, attention weights) is done in float32 for half precision and in float64 for float64: see `wide`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, silu
from torch.nn.functional import linear as matmul

from refengine.decoder.networks.rope import Rope


@dataclass(frozen=True)
class Weights:
    """Tensors by the name they have in the file, seen from one prefix on.

    gemma4  norms are multiplied before they are narrowed, and embeddings by the root of H, rounded as the weights are
    """

    tensors: Mapping[str, Tensor]
    prefix: str = ""
    gemma4: bool = False

    def at(self, *names: str | int) -> "Weights":
        return Weights(self.tensors, self.prefix + "".join(f"{name}." for name in names), self.gemma4)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[self.prefix + name]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.tensors

    def linear(self, name: str, x: Tensor) -> Tensor:
        """x @ weight.T, plus the bias where there is one."""
        return matmul(x, self[f"{name}.weight"], self.tensors.get(f"{self.prefix}{name}.bias"))

    def embed(self, name: str, tokens: Tensor) -> Tensor:
        table = self[f"{name}.weight"]
        rows = embedding(tokens, table)
        return rows * table.new_tensor(table.shape[1] ** 0.5) if self.gemma4 else rows

    def norm(self, name: str, x: Tensor, eps: float) -> Tensor:
        """RMSNorm over the last axis, multiplied by the stored weight: the weight is the scale."""
        if self.gemma4:
            return (wide(self[f"{name}.weight"]) * rms(wide(x), eps)).to(x.dtype)
        return self[f"{name}.weight"] * rms(x, eps)


def wide(x: Tensor) -> Tensor:
    """float64 stays, everything narrower becomes float32."""
    return x if x.dtype is torch.float64 else x.float()


def rms(x: Tensor, eps: float) -> Tensor:
    """x over its root mean square, in x's dtype."""
    wider = wide(x)
    return (wider * torch.rsqrt(wider.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Unscaled rotary position embedding of x [n, heads, d] at `positions` [n]."""
    return Rope(theta).rotate(x, positions)


def rotate_pairs(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """The same rotation of neighbours against each other."""
    return Rope(theta).rotate_pairs(x, positions)


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, sees: Tensor | None = None) -> Tensor:
    """Attention of q [n, A, d] over k, v [m, G, d], query heads grouped over key heads; returns [n, A * d].

    sees: bool [n, m], None where every row sees everything.
    """
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("nad,mad->anm", q, k) * scale
    if sees is not None:
        scores = scores.masked_fill(~sees, float("-inf"))
    return torch.einsum("anm,mad->nad", wide(scores).softmax(-1).to(v.dtype), v).flatten(1)


@dataclass(frozen=True)
class Heads:
    """Sizes of an attention, G key/value heads of width d, and how rows become queries, keys and values.

    Queries and keys are normed per head where the file has such norms (Qwen3, Gemma 4), and then rotated.
    gemma4  values are normed too, without a weight, and scores are not scaled
    """

    key_value_heads: int
    width: int
    rope: Rope
    eps: float
    gemma4: bool = False

    @property
    def scale(self) -> float:
        return 1.0 if self.gemma4 else self.width**-0.5

    def empty(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of no row."""
        nothing = like.new_empty(0, self.key_value_heads, self.width)
        return nothing, nothing

    def queries(self, w: Weights, x: Tensor, positions: Tensor) -> Tensor:
        """[n, A, d]"""
        return self._rotated(w, "q", self._split(w.linear("q_proj", x)), positions)

    def keys_and_values(self, w: Weights, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Each [n, G, d]. Without a v_proj, the projection of the keys serves both (Gemma 4's attention_k_eq_v)."""
        k = self._split(w.linear("k_proj", x))
        v = self._split(w.linear("v_proj", x)) if "v_proj.weight" in w else k
        return self._rotated(w, "k", k, positions), rms(v, self.eps) if self.gemma4 else v

    def _split(self, y: Tensor) -> Tensor:
        return y.view(len(y), y.shape[-1] // self.width, self.width)  # -1 would be ambiguous where there is no row

    def _rotated(self, w: Weights, which: str, y: Tensor, positions: Tensor) -> Tensor:
        if f"{which}_norm.weight" in w:
            y = w.norm(f"{which}_norm", y, self.eps)
        return self.rope.rotate(y, positions)


def after_attention(layer: Weights, hidden: Tensor, attended: Tensor, eps: float) -> Tensor:
    """The rest of a decoder layer: `hidden` [n, H] is its residual, `attended` what its attention put out.

    Gemma 4's layers norm what each half adds as well, and scale what they put out.
    """
    if "layer_scalar" not in layer:
        hidden = hidden + attended
        return hidden + gated_mlp(layer.at("mlp"), layer.norm("post_attention_layernorm", hidden, eps))
    hidden = hidden + layer.norm("post_attention_layernorm", attended, eps)
    normed, mlp = layer.norm("pre_feedforward_layernorm", hidden, eps), layer.at("mlp")
    gated = gelu(mlp.linear("gate_proj", normed), approximate="tanh") * mlp.linear("up_proj", normed)
    fed = layer.norm("post_feedforward_layernorm", mlp.linear("down_proj", gated), eps)
    return (hidden + fed) * layer["layer_scalar"]


def softcapped(logits: Tensor, cap: float | None) -> Tensor:
    """Logits bent into (-cap, cap) by a hyperbolic tangent, where there is a cap (Gemma)."""
    return logits if cap is None else torch.tanh(logits / cap) * cap


def gated_mlp(w: Weights, x: Tensor) -> Tensor:
    """down(silu(gate x) * up x)."""
    return w.linear("down_proj", silu(w.linear("gate_proj", x)) * w.linear("up_proj", x))
