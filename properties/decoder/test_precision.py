"""Where numbers are widened and narrowed: the parts that drafters share are those of transformers bit for bit, in every
precision, and at positions where half precision cannot count any more."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from transformers import DeepseekV3Config, LlamaConfig
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.gemma4 import modeling_gemma4 as gemma4
from transformers.models.llama import modeling_llama as llama
from transformers.models.qwen3 import modeling_qwen3 as qwen3
from transformers.models.qwen3_next import modeling_qwen3_next as qwen3_next

from properties.helpers.coins import COINS
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.drafters.qwen_mtp import centred_norm
from refengine.decoder.loop import Session
from refengine.decoder.networks.experts import Routing, route
from refengine.decoder.networks.layers import Weights, attend, gated_mlp, rotate, rotate_pairs
from refengine.decoder.protocols import Target, Tokens
from refengine.decoder.targets.base import Float64
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules import RULES
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.row import Row
from refengine.selfcheck.drafters.table import ROWS as DRAFTERS
from refengine.source_tree import FIXTURES

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
    w = replace(w, gemma4=kind is gemma4.Gemma4RMSNorm)
    x = (3 * numbers(ROWS, WIDTH)).to(dtype)
    return ours(w, x), module["norm"](x)


def embedded(dtype: torch.dtype) -> Both:
    """Gemma 4's. The root of 40 is no number of half precision."""
    module, w = shaken(torch.nn.ModuleDict({"e": gemma4.Gemma4TextScaledWordEmbedding(ROWS, 40, None, 40**0.5)}), dtype)
    tokens = torch.arange(ROWS)
    return replace(w, gemma4=True).embed("e", tokens), module["e"](tokens)


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


def attended(dtype: torch.dtype) -> Both:
    """Of grouped heads, each row seeing those before it and itself."""
    q, k, v = (numbers(ROWS, heads, WIDTH).to(dtype) for heads in (2 * HEADS, HEADS, HEADS))
    sees = torch.ones(ROWS, ROWS, dtype=torch.bool).tril()
    mask = torch.zeros(ROWS, ROWS, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)
    module: Any = torch.nn.Module()
    module.num_key_value_groups = 2
    apart = (x.transpose(0, 1)[None] for x in (q, k, v))
    theirs, _ = llama.eager_attention_forward(module.eval(), *apart, mask[None, None], scaling=WIDTH**-0.5)
    return attend(q, k, v, WIDTH**-0.5, sees), theirs[0].flatten(1)


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
    "Gemma 4's norm": lambda dtype: normed(gemma4.Gemma4RMSNorm, lambda w, x: w.norm("norm", x, EPS), dtype),
    "Gemma 4's embeddings": embedded,
    "halves turned": lambda dtype: turned(dtype, pairs=False),
    "pairs turned": lambda dtype: turned(dtype, pairs=True),
    "gated MLP": fed,
    "attention": attended,
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


# What models compute "in float32", whatever their weights are; and what policies and rules compute.
WIDENED = {"softmax", "log_softmax", "rsqrt", "cos", "sin", "exp", "log", "cumsum", "logsumexp"}


class Narrow(TorchFunctionMode):
    """Which of these were computed in half precision."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.__name__ in WIDENED and out.dtype in (torch.bfloat16, torch.float16):
            self.found.add(func.__name__)
        return out


@cache
def half_precise(folder: str, dtype: torch.dtype) -> Target:
    return load_target(FIXTURES / folder, dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", DRAFTERS)
@torch.inference_mode()
def test_half_precision_ends_where_numbers_are_exponents(name: str, dtype: torch.dtype) -> None:
    """Kills attention weights, norms, angles or log probabilities of any network in the precision of its weights, and a
    target or a drafter whose logits come to the policy, or rows to the rule, in half precision."""
    row, told = DRAFTERS[name], set[torch.dtype]()
    target = half_precise(row.target, dtype)

    def policy(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        told.add(logits.dtype)
        return pipeline(temperature(1.0))(logits, prompt, prefix)

    with Narrow() as narrow:
        session = Session(target, row.load(target), RULES[row.rules[0]], policy, 12)
        session.begin(row.prompt, COINS)
        while not session.done:
            session.play(COINS)
    assert not narrow.found
    assert told == {torch.float32}
    assert all(block.q is None or block.q.dtype is torch.float32 for block in (x.block for x in session.rounds))


def of_gemma4(row: Row) -> bool:
    config = FIXTURES / row.folder / "config.json"
    return bool(row.folder) and config.is_file() and "gemma4" in config.read_text()


@pytest.mark.parametrize("name", [name for name, row in DRAFTERS.items() if of_gemma4(row)])
def test_drafters_of_gemma_4_round_as_gemma_4(name: str) -> None:
    """Kills a layout of Gemma 4's layers that is run with Qwen's norms: in float32 nothing would show it."""
    drafter: Any = DRAFTERS[name].load(target_that_remembers(DRAFTERS[name].target))
    assert getattr(drafter, "network", drafter).w.gemma4


def test_float32_by_name_is_float64_in_exact_passes() -> None:
    """Kills a softmax in float32, which models ask for by keyword, in the middle of a pass that is to be exact."""
    with Float64():
        x = torch.zeros(2, dtype=torch.float64)
        assert x.softmax(-1, dtype=torch.float32).dtype is x.softmax(-1, torch.float32).dtype is torch.float64
        assert x.to(torch.float32).dtype is x.to(dtype=torch.float32).dtype is x.float().dtype is torch.float64
