"""Where numbers are widened and narrowed: the parts that drafters share are those of transformers bit for bit, in every
precision, and at positions where half precision cannot count any more."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DeepseekV3Config, LlamaConfig
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.llama import modeling_llama as llama
from transformers.models.qwen3 import modeling_qwen3 as qwen3
from transformers.models.qwen3_next import modeling_qwen3_next as qwen3_next

from refengine.decoder.drafters.qwen_mtp import centred_norm
from refengine.decoder.networks.experts import Routing, route
from refengine.decoder.networks.layers import Weights, gated_mlp, rotate, rotate_pairs

ROWS, HEADS, WIDTH, EPS = 40, 4, 16, 1e-5
POSITIONS = torch.arange(ROWS) * 97 + 3  # up to 3786: bfloat16 counts to 256, float16 to 2048
Both = tuple[Tensor, Tensor]  # ours, theirs


def numbers(*size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(sum(size)))


def shaken(module: Any, dtype: torch.dtype) -> tuple[Any, Weights]:
    """A module of transformers whose numbers are all away from 0 and 1, and the same numbers as weights."""
    for x in module.parameters():
        x.data = numbers(*x.shape) * (0.5 if x.dim() == 1 else x.shape[-1] ** -0.5)
    module = module.to(dtype).requires_grad_(False).eval()
    return module, Weights(module.state_dict())


def normed(kind: Any, ours: Callable[[Weights, Tensor], Tensor], dtype: torch.dtype) -> Both:
    module, w = shaken(torch.nn.ModuleDict({"norm": kind(WIDTH, EPS)}), dtype)
    x = (3 * numbers(ROWS, WIDTH)).to(dtype)
    return ours(w, x), module["norm"](x)


def turned(dtype: torch.dtype, pairs: bool) -> Both:
    config: Any = LlamaConfig(head_dim=WIDTH, hidden_size=HEADS * WIDTH, num_attention_heads=HEADS)
    x = numbers(ROWS, HEADS, WIDTH).to(dtype)
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, POSITIONS[None])
    apart = x.transpose(0, 1)[None]
    if not pairs:
        theirs, _ = llama.apply_rotary_pos_emb(apart, apart, cos, sin)
        return rotate(x, POSITIONS, 1e4), theirs[0].transpose(0, 1)
    theirs, _ = deepseek.apply_rotary_pos_emb_interleave(apart, apart, cos, sin)
    ours = rotate_pairs(x, POSITIONS, 1e4)  # theirs leaves the pairs as halves
    return torch.cat((ours[..., 0::2], ours[..., 1::2]), -1), theirs[0].transpose(0, 1)


def fed(dtype: torch.dtype) -> Both:
    config: Any = LlamaConfig(hidden_size=WIDTH, intermediate_size=24, num_attention_heads=HEADS)
    module, w = shaken(llama.LlamaMLP(config), dtype)
    x = numbers(ROWS, WIDTH).to(dtype)
    return gated_mlp(w, x), module(x)


def routed(dtype: torch.dtype) -> Both:
    """The weight of each of DeepSeek's experts, 0 where it is not chosen. Unnormed: a sum has an order."""
    config: Any = DeepseekV3Config(
        hidden_size=WIDTH, n_routed_experts=6, n_group=3, topk_group=2, num_experts_per_tok=3,
        norm_topk_prob=False, routed_scaling_factor=1.5,
    )  # fmt: skip
    module, w = shaken(deepseek.DeepseekV3TopkRouter(config), dtype)
    module.e_score_correction_bias = bias = numbers(6)  # in float32, whatever the weights are
    x = numbers(ROWS, WIDTH).to(dtype)
    ours = route(Weights({**w.tensors, "e_score_correction_bias": bias}), Routing(6, 3, 2, 3, False, 1.5), x)
    one, other = (torch.zeros(ROWS, 6).scatter(1, chosen, y) for chosen, y in (ours, module(x)[:0:-1]))
    return one, other


PARTS: dict[str, Callable[[torch.dtype], Both]] = {
    "Llama's norm": lambda dtype: normed(llama.LlamaRMSNorm, lambda w, x: w.norm("norm", x, EPS), dtype),
    "Qwen3's norm": lambda dtype: normed(qwen3.Qwen3RMSNorm, lambda w, x: w.norm("norm", x, EPS), dtype),
    "Qwen3-Next's norm": lambda dtype: normed(
        qwen3_next.Qwen3NextRMSNorm, lambda w, x: centred_norm(w, "norm", x, EPS), dtype
    ),
    "halves turned": lambda dtype: turned(dtype, pairs=False),
    "pairs turned": lambda dtype: turned(dtype, pairs=True),
    "gated MLP": fed,
    "DeepSeek's router": routed,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@torch.inference_mode()
def test_a_part_rounds_where_that_of_transformers_does(part: str, dtype: torch.dtype) -> None:
    """Kills a product, a norm, an angle or a router that is computed in the weights' precision where the model widens
    it, or wider where the model does not: a checkpoint is trained and served with these roundings."""
    ours, theirs = PARTS[part](dtype)
    assert ours.dtype is theirs.dtype
    assert torch.equal(ours, theirs)
