"""Drafters of random sizes, made of the layers of transformers: checkpoints as released, and what the layers say.

Nothing of the decoder is used here. A peer computes every row of a chain from scratch, without a cache: the layers,
norms and angles are those of the official classes, and what stands around them is written as the releases have it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Gemma4TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.models.gemma4 import modeling_gemma4 as gemma4
from transformers.models.llama import modeling_llama as llama
from transformers.models.qwen3 import modeling_qwen3 as qwen3

from refengine.decoder.targets.base import Float64

POSITIONS = 64  # of every config
ROPES: list[dict[str, Any]] = [  # in the words of transformers 5
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 16},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
]  # fmt: skip


class Coins(Random):
    """A generator whose coins, numbers below or above 1/2, fall the other way in the next seed: of what a maker tosses
    for, a seed has the one and its neighbour the other."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(f"{name} {seed}")
        self.tossed, self.turned = Random(f"{name} {seed // 2}"), 0.5 * (seed % 2)

    def random(self) -> float:
        return (self.tossed.random() + self.turned) % 1.0

    def getrandbits(self, k: int, /) -> int:  # which `choice` and `sample` use
        return super().getrandbits(k)


LAYERS = {
    "llama": llama.LlamaDecoderLayer, "qwen3": qwen3.Qwen3DecoderLayer, "gemma4": gemma4.Gemma4TextDecoderLayer,
}  # fmt: skip


def shaken(module: Any, source: Random) -> Any:
    """A module of float64 whose numbers are all away from 0 and 1."""
    made = torch.Generator().manual_seed(source.randrange(1 << 30))
    for x in module.parameters():
        x.data = torch.randn(x.shape, generator=made, dtype=torch.float64)
        x.data *= 0.5 if x.dim() == 1 else x.shape[-1] ** -0.5
        x.data += 0.7 if x.dim() == 1 else 0.0
    return module.double().eval().requires_grad_(False)


def random_table(source: Random, *size: int) -> Tensor:
    made = torch.Generator().manual_seed(source.randrange(1 << 30))
    return torch.randn(size, generator=made, dtype=torch.float64)


def linear(width: int, out: int, bias: bool = False) -> nn.Linear:
    return nn.Linear(width, out, bias=bias)


# --- the target ------------------------------------------------------------------------------------------------------


FAMILIES: list[tuple[Any, Any, dict[str, Any]]] = [
    (LlamaForCausalLM, LlamaConfig, {}),
    (Qwen3ForCausalLM, Qwen3Config, {}),
    (Gemma3ForCausalLM, Gemma3TextConfig, {"sliding_window": 3, "query_pre_attn_scalar": 5}),  # it scales embeddings
]


def random_target(source: Random, layers: int) -> Any:
    """A model of odd sizes, its embeddings tied or not."""
    groups = source.choice((1, 2, 3))
    sizes: dict[str, Any] = {
        "vocab_size": source.randrange(9, 24), "hidden_size": source.choice((12, 24)), "intermediate_size": 7,
        "num_hidden_layers": layers, "num_attention_heads": groups * source.choice((1, 2)), "head_dim": 2,
        "num_key_value_heads": groups, "max_position_embeddings": POSITIONS, "rms_norm_eps": 0.03,
        "tie_word_embeddings": source.random() < 0.5, "eos_token_id": None, "bos_token_id": None,
    }  # fmt: skip
    kind, config, more = source.choice(FAMILIES)
    with Float64():
        return shaken(kind(config(**sizes, **more, attn_implementation="eager", pad_token_id=None)), source)


# --- sizes -----------------------------------------------------------------------------------------------------------


@dataclass
class Sizes:
    """Sizes of a drafter's layers, as a config says them, and the official config of the same."""

    source: Random
    hidden: int
    family: str = "llama"
    even: bool = False  # heads fill the width
    layers: int = 1
    head_bias: bool = False
    mlp_bias: bool = False
    scaled: bool = True
    fields: dict[str, Any] = field(default_factory=dict)
    turned: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source = self.source
        self.groups = source.choice((1, 2, 3))
        self.heads = self.groups * source.choice((1, 2, 4) if self.groups == 1 else (1, 2))
        self.width = self.hidden // self.heads if self.even else source.choice((2, 4, 6, 10))
        if self.width % 2:
            self.heads, self.groups, self.width = self.hidden // 4, source.choice((1, 3)), 4
        self.eps = source.choice((1e-6, 0.1, 0.7))
        self.rope = {"rope_theta": source.choice((20.0, 1e4)), **source.choice(ROPES if self.scaled else ROPES[:1])}
        self.fields = {
            "hidden_act": "silu", "hidden_size": self.hidden, "intermediate_size": source.randrange(3, 12),
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.groups,
            "rms_norm_eps": self.eps, "max_position_embeddings": POSITIONS,
        }  # fmt: skip
        if not self.even:
            self.fields["head_dim"] = self.width
        if self.family == "gemma4":
            self._gemma4()
            return
        config: Any = {"llama": LlamaConfig, "qwen3": Qwen3Config}[self.family]
        self.config = config(
            **self.fields, rope_parameters=self.rope, attention_bias=self.head_bias, attn_implementation="eager",
            **({"mlp_bias": self.mlp_bias} if self.family == "llama" else {}),
        )  # fmt: skip

    def _gemma4(self) -> None:
        """The sizes of full-attention layers have names of their own there, and those of sliding ones are others."""
        shared = self.source.random() < 0.5  # values are the projection of the keys
        del self.fields["hidden_act"]
        self.fields |= {
            "hidden_activation": "gelu_pytorch_tanh", "global_head_dim": self.width, "head_dim": 8,
            "num_key_value_heads": self.heads if shared else self.groups, "attention_k_eq_v": shared,
            "num_global_key_value_heads": self.groups if shared else self.heads,
        }  # fmt: skip
        full = {"rope_type": "proportional", "partial_rotary_factor": self.source.choice((0.5, 1.0))}
        self.rope = {
            "full_attention": self.source.choice((full, {"rope_type": "default"})) | {"rope_theta": 55.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 11.0},
        }
        self.config = Gemma4TextConfig(
            **self.fields, rope_parameters=self.rope, attention_bias=self.head_bias, attn_implementation="eager",
            layer_types=["full_attention"] * self.layers, hidden_size_per_layer_input=0, num_kv_shared_layers=0,
        )  # fmt: skip

    def said_rope(self) -> dict[str, Any]:
        """The rotary embedding in the words of either generation."""
        scaling = {name: x for name, x in self.rope.items() if name != "rope_theta"}
        if self.family == "gemma4" or self.source.random() < 0.5:
            return {"rope_parameters": self.rope}
        if scaling["rope_type"] == "default":
            return {"rope_theta": self.rope["rope_theta"], "rope_scaling": None}
        if self.source.random() < 0.5:
            scaling["type"] = scaling.pop("rope_type")
        return {"rope_theta": self.rope["rope_theta"], "rope_scaling": scaling}

    def groups_said(self) -> dict[str, Any]:
        """As many groups as heads may be left unsaid."""
        said = {"num_key_value_heads": self.groups}
        return maybe(self.source, **said) if self.groups == self.heads else said

    def bias_said(self) -> dict[str, Any]:
        return {"attention_bias": True} if self.head_bias else maybe(self.source, attention_bias=False)

    def layer(self, width: int | None = None, biased: bool | None = None) -> Any:
        """A decoder layer. width: of the rows that its attention reads, where that is not the layer's own; biased:
        whether their projections are, where they differ from the others."""
        with Float64():
            made: Any = LAYERS[self.family](self.config, 0)
            if width is not None:
                for name in ("q_proj", "k_proj", "v_proj"):
                    if (old := getattr(made.self_attn, name)) is not None:
                        bias = old.bias is not None if biased is None else biased
                        setattr(made.self_attn, name, linear(width, old.out_features, bias))
        if self.family == "gemma4":
            made.layer_scalar.fill_(0.3 + self.source.random())
        return made

    def norm(self, width: int | None = None) -> Any:
        kind = gemma4.Gemma4RMSNorm if self.family == "gemma4" else llama.LlamaRMSNorm
        return kind(self.hidden if width is None else width, eps=self.eps)

    def written(self, table: Tensor) -> Tensor:
        """What the family makes of a stored table of embeddings."""
        return table * table.shape[1] ** 0.5 if self.family == "gemma4" else table

    def turns(self, count: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines at positions 0 .. count - 1."""
        if count not in self.turned:
            gemma = self.family == "gemma4"
            kind: Any = gemma4.Gemma4TextRotaryEmbedding if gemma else llama.LlamaRotaryEmbedding
            of = ("full_attention",) if gemma else ()
            with Float64():
                rotary = kind(self.config)
                self.turned[count] = rotary(torch.zeros(1, dtype=torch.float64), torch.arange(count)[None], *of)
        return self.turned[count]


def causal(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool).tril()


def capped(logits: Tensor, cap: float | None) -> Tensor:
    return logits if cap is None else torch.tanh(logits / cap) * cap


def attended(layer: Any, normed: Tensor, sizes: Sizes, sees: Tensor) -> Tensor:
    """What a layer's attention makes of its rows [n, *]; sees bool [n, n]."""
    mask = torch.zeros(sees.shape, dtype=torch.float64).masked_fill(~sees, -1e300)[None, None]
    more = {"shared_kv_states": {}} if sizes.family == "gemma4" else {}
    out: Tensor = layer.self_attn(
        normed[None], position_embeddings=sizes.turns(len(normed)), attention_mask=mask, past_key_values=None, **more
    )[0][0]
    return out


def rest(layer: Any, hidden: Tensor, attended: Tensor) -> Tensor:
    """What stands behind the attention of a layer."""
    if hasattr(layer, "layer_scalar"):
        hidden = hidden + layer.post_attention_layernorm(attended)
        fed: Tensor = layer.post_feedforward_layernorm(layer.mlp(layer.pre_feedforward_layernorm(hidden)))
        return (hidden + fed) * layer.layer_scalar
    hidden = hidden + attended
    out: Tensor = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
    return out


# --- peers -----------------------------------------------------------------------------------------------------------


@dataclass
class Peer:
    """A drafter, as released and as it computes: functions of what the taps say of prefix[:-1] [n, F], the prefix, and
    the drafted tokens.

    chain   logits [*, V], a row for each of the drafted tokens at least
    length  how many tokens it drafts
    """

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    taps: tuple[int, ...]
    chain: Callable[..., Tensor]
    length: Callable[..., int]

    def write(self, folder: Path) -> Path:
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(self.config))
        save_file({name: x.clone().contiguous() for name, x in self.tensors.items()}, folder / "model.safetensors")
        return folder


@dataclass
class Words:
    """A draft vocabulary: the target's tokens that can be drafted, in ascending order."""

    tokens: int
    drafted: Sequence[int]

    @staticmethod
    def of(source: Random, model: Any) -> "Words":
        tokens: int = model.config.vocab_size
        return Words(tokens, sorted(source.sample(range(tokens), source.choice((tokens, tokens - 1, tokens // 2)))))

    @property
    def count(self) -> int:
        return len(self.drafted)

    @property
    def maps(self) -> dict[str, Tensor]:
        member = torch.zeros(self.tokens, dtype=torch.bool)
        member[list(self.drafted)] = True
        return {
            "d2t": torch.tensor(self.drafted) - torch.arange(self.count), "t2d": member
        } if self.count < self.tokens else {}  # fmt: skip

    def spread(self, own: Tensor) -> Tensor:
        """Logits over the draft's words as logits over the target's."""
        whole = torch.full((len(own), self.tokens), float("-inf"), dtype=own.dtype)
        for place, token in enumerate(self.drafted):
            whole[:, token] = own[:, place]
        return whole


def named(prefix: str, module: Any) -> dict[str, Tensor]:
    return {f"{prefix}{name}": x for name, x in module.state_dict().items()}


def maybe(source: Random, **fields: Any) -> dict[str, Any]:
    """Fields that a config may leave out, or leave null but for flags. The values are those that it has then."""
    said = {}
    for name, value in fields.items():
        if (way := source.randrange(3)) < 2:
            said[name] = value if way or isinstance(value, bool) else None
    return said
