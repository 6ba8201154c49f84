"""The building blocks that drafters share: functions of tensors, and of weights under their released names.

Shapes: rows n, hidden H, heads A, key/value heads G, head width d. A computation that models do "in float32" (norms,
angles, attention weights) is done in float32 for half precision and in float64 for float64: see `wide`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, silu
from torch.nn.functional import linear as matmul


@dataclass(frozen=True)
class Weights:
    """Tensors by the name they have in the file, seen from one prefix on."""

    tensors: Mapping[str, Tensor]
    prefix: str = ""

    def at(self, *names: str | int) -> "Weights":
        return Weights(self.tensors, self.prefix + "".join(f"{name}." for name in names))

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[self.prefix + name]

    def linear(self, name: str, x: Tensor) -> Tensor:
        """x @ weight.T, plus the bias where there is one."""
        return matmul(x, self[f"{name}.weight"], self.tensors.get(f"{self.prefix}{name}.bias"))

    def embed(self, name: str, tokens: Tensor) -> Tensor:
        return embedding(tokens, self[f"{name}.weight"])

    def norm(self, name: str, x: Tensor, eps: float) -> Tensor:
        """RMSNorm over the last axis, multiplied by the stored weight (Llama and Qwen3: the weight is the scale)."""
        return self[f"{name}.weight"] * rms(x, eps)


def wide(x: Tensor) -> Tensor:
    """float64 stays, everything narrower becomes float32."""
    return x if x.dtype is torch.float64 else x.float()


def rms(x: Tensor, eps: float) -> Tensor:
    """x over its root mean square, in x's dtype."""
    wider = wide(x)
    return (wider * torch.rsqrt(wider.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Rotary position embedding of x [n, heads, d] at `positions` [n]: halves rotated against each other (NeoX style).

    Angle of pair i at position t: t * theta^(-2 i / d).
    """
    width = x.shape[-1]
    exponents = torch.arange(0, width, 2, device=x.device).to(wide(x).dtype) / width
    angles = positions[:, None].to(exponents.dtype) / theta**exponents
    cos, sin = (torch.cat((f, f), -1).to(x.dtype)[:, None] for f in (angles.cos(), angles.sin()))
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def rotate_pairs(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """The same rotation of neighbours (x0, x1), (x2, x3), ... against each other, as Meta's own layouts have it."""
    width = x.shape[-1]
    exponents = torch.arange(0, width, 2, device=x.device).to(wide(x).dtype) / width
    angles = positions[:, None].to(exponents.dtype) / theta**exponents
    cos, sin = (f.to(x.dtype)[:, None] for f in (angles.cos(), angles.sin()))
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


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


def gated_mlp(w: Weights, x: Tensor) -> Tensor:
    """down(silu(gate x) * up x)."""
    return w.linear("down_proj", silu(w.linear("gate_proj", x)) * w.linear("up_proj", x))
