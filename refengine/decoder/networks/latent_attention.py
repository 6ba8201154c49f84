"""Multi-head latent attention (DeepSeek-AI 2024, V2, section 2.1.2).

Keys and values of all heads are made from one narrow row per token. That row, the latent, and one rotated key that all
heads share are all that is cached: r + d_r numbers a token, whatever the number of heads.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from refengine.decoder.networks.layers import Weights, attend
from refengine.decoder.networks.rope import Rope

Latents: TypeAlias = tuple[Tensor, Tensor]  # the latents [m, r] after their norm, the shared keys [m, 1, d_r] rotated

EPS = 1e-6  # of the two inner norms: the official code leaves it at the default, whatever rms_norm_eps says


@dataclass(frozen=True)
class LatentHeads:
    """Sizes of the attention, named as in config.json: A heads, r = kv_lora_rank, d_r = qk_rope_head_dim."""

    num_attention_heads: int
    q_lora_rank: int | None  # None: queries are made in one step, by q_proj
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    rope: Rope
    rope_interleave: bool
    stretch: float  # what a stretched context multiplies scores by: the square of YaRN's magnitude for mscale_all_dim

    @property
    def scale(self) -> float:
        return self.stretch / math.sqrt(self.qk_nope_head_dim + self.qk_rope_head_dim)

    def empty(self, like: Tensor) -> Latents:
        return like.new_empty(0, self.kv_lora_rank), like.new_empty(0, 1, self.qk_rope_head_dim)

    def rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        return (self.rope.rotate_pairs if self.rope_interleave else self.rope.rotate)(x, positions)


def latent_attention(
    w: Weights, heads: LatentHeads, x: Tensor, positions: Tensor, past: Latents, sees: Tensor
) -> tuple[Tensor, Latents]:
    """Attention of rows x [n, H] over `past` and themselves; returns [n, H] and what is cached with the rows in it."""
    plain, a = heads.qk_nope_head_dim, heads.num_attention_heads
    if heads.q_lora_rank is None:
        q = w.linear("q_proj", x)
    else:
        q = w.linear("q_b_proj", w.norm("q_a_layernorm", w.linear("q_a_proj", x), EPS))
    q = q.view(len(x), a, plain + heads.qk_rope_head_dim)
    q = torch.cat((q[..., :plain], heads.rotated(q[..., plain:], positions)), -1)

    new = w.linear("kv_a_proj_with_mqa", x)
    latent, key = new[:, : heads.kv_lora_rank], new[:, None, heads.kv_lora_rank :]
    latents = torch.cat((past[0], w.norm("kv_a_layernorm", latent, EPS)))
    keys = torch.cat((past[1], heads.rotated(key, positions)))

    both = w.linear("kv_b_proj", latents).view(len(latents), a, plain + heads.v_head_dim)
    k = torch.cat((both[..., :plain], keys.expand(-1, a, -1)), -1)
    return w.linear("o_proj", attend(q, k, both[..., plain:], heads.scale, sees)), (latents, keys)
