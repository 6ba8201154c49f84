"""The layout of facebook/multi-token-prediction: Meta's own names, `params.json` beside `consolidated.*`.

One file is target and drafter: `layers` holds the trunk and the next-token block, `extra_heads` the other heads. It is
released as a pickle (`refengine checkpoint convert consolidated.00.pth consolidated.safetensors`).
"""

from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.from_target import on_target
from refengine.decoder.drafters.parallel_heads import ParallelHeads, Shape
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

KNOWN = {
    *("dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "multiple_of", "ffn_dim_multiplier", "norm_eps"),
    *("rope_theta", "n_future_tokens", "max_seq_len", "max_batch_size"),
}


def load(checkpoint: Checkpoint, target: Target) -> ParallelHeads:
    """The extra heads; the target is the same checkpoint's."""
    shape, tensors = read(checkpoint)
    ours = {"vocabulary": shape.vocab_size, "width": shape.dim, "number of layers": shape.target_layers}
    theirs = (target.vocabulary, target.width, target.layers)
    for (what, size), other in zip(ours.items(), theirs, strict=True):
        if size != other:
            checkpoint.config.refuse(f"a {what} of {size}, and the target has {other}: it drafts for itself")
    if not shape.extra_heads:
        raise BadInput(f"{checkpoint.folder}: no extra_heads in the file, so there is nothing to draft with")
    used = {name: x for name, x in tensors.items() if not name.startswith(("layers.", "tok_embeddings."))}
    return ParallelHeads(shape, on_target(used, target))


def load_trunk(checkpoint: Checkpoint, dtype: torch.dtype | None) -> Any:
    """The target: trunk and next-token block as a Llama of transformers. Raises BadInput."""
    shape, tensors = read(checkpoint)
    return llama(shape, tensors, [f"layers.{i}." for i in range(shape.target_layers)], dtype)


def read(checkpoint: Checkpoint) -> tuple[Shape, dict[str, Tensor]]:
    """Everything in the folder, held to what params.json says."""
    params, names = checkpoint.config, checkpoint.shapes
    heads = len({name.split(".")[1] for name in names if name.startswith("extra_heads.")})
    embedded, read_out = (names.get(name, (0,))[0] for name in ("tok_embeddings.weight", "output.weight"))
    if embedded and read_out and embedded != read_out:
        raise BadInput(
            f"{checkpoint.folder}: tok_embeddings.weight holds {embedded} tokens, and output.weight {read_out}"
        )
    shape = read_shape(params, heads, embedded)
    return shape, checkpoint.read(table(shape))


def read_shape(params: Config, extra_heads: int, embedded: int) -> Shape:
    """The sizes. n_layers counts every block; a vocabulary of -1 (Llama 2) is the embedding's."""
    dim, heads = params.integer("dim"), params.integer("n_heads")
    if unknown := sorted(name for name, value in params.fields.items() if name not in KNOWN and value):
        params.refuse(f"{unknown[0]} is {params.fields[unknown[0]]!r}, and this layout has no such thing")
    vocabulary = embedded if params.fields.get("vocab_size") == -1 else params.integer("vocab_size")
    shape = params.sizes(
        Shape,
        n_layers=params.integer("n_layers", least=2),
        n_kv_heads=heads if params.fields.get("n_kv_heads") is None else params.integer("n_kv_heads"),
        vocab_size=vocabulary,
        ffn_dim=_ffn_dim(params, dim),
        rope_theta=params.number("rope_theta") if "rope_theta" in params.fields else 10000.0,
        extra_heads=extra_heads,
    )
    ahead = params.integer("n_future_tokens") if "n_future_tokens" in params.fields else extra_heads + 1
    if ahead != extra_heads + 1:
        params.refuse(f"n_future_tokens is {ahead}, and the file has {extra_heads} extra_heads")
    if shape.target_layers < 2:
        params.refuse(f"n_layers is {shape.n_layers}, too few for {extra_heads} extra_heads, a trunk and its own block")
    if dim % heads or dim // heads % 2 or heads % shape.n_kv_heads:
        params.refuse(f"dim {dim} does not divide into {heads} heads over {shape.n_kv_heads} key/value heads")
    return shape


def _ffn_dim(params: Config, dim: int) -> int:
    """Llama's rule: two thirds of 4 dim, times the multiplier, rounded up to a multiple of `multiple_of`."""
    width, step = 8 * dim // 3, params.integer("multiple_of")
    if params.fields.get("ffn_dim_multiplier") is not None:
        width = int(params.number("ffn_dim_multiplier") * width)
    return -(-width // step) * step


def table(s: Shape) -> dict[str, tuple[int, ...]]:
    """Every tensor of the file, with its shape."""
    kv = s.n_kv_heads * (s.dim // s.n_heads)
    block = {
        "attention.wq.weight": (s.dim, s.dim),
        "attention.wk.weight": (kv, s.dim),
        "attention.wv.weight": (kv, s.dim),
        "attention.wo.weight": (s.dim, s.dim),
        "feed_forward.w1.weight": (s.ffn_dim, s.dim),
        "feed_forward.w2.weight": (s.dim, s.ffn_dim),
        "feed_forward.w3.weight": (s.ffn_dim, s.dim),
        "attention_norm.weight": (s.dim,),
        "ffn_norm.weight": (s.dim,),
    }
    blocks = [f"layers.{i}." for i in range(s.target_layers)] + [f"extra_heads.{k}." for k in range(s.extra_heads)]
    names: dict[str, tuple[int, ...]] = {"tok_embeddings.weight": (s.vocab_size, s.dim), "norm.weight": (s.dim,)}
    names["output.weight"] = (s.vocab_size, s.dim)
    return names | {prefix + name: size for prefix in blocks for name, size in block.items()}


def llama(shape: Shape, tensors: dict[str, Tensor], blocks: list[str], dtype: torch.dtype | None) -> Any:
    """A Llama of transformers whose layers are these blocks of the file, in this order."""
    config = LlamaConfig(
        vocab_size=shape.vocab_size, hidden_size=shape.dim, intermediate_size=shape.ffn_dim,
        num_hidden_layers=len(blocks), num_attention_heads=shape.n_heads, num_key_value_heads=shape.n_kv_heads,
        rms_norm_eps=shape.norm_eps, rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    config._attn_implementation = "eager"
    state = {"model.embed_tokens.weight": tensors["tok_embeddings.weight"], "lm_head.weight": tensors["output.weight"]}
    state["model.norm.weight"] = tensors["norm.weight"]
    heads = {"attention.wq": shape.n_heads, "attention.wk": shape.n_kv_heads}
    for layer, prefix in enumerate(blocks):
        for ours, theirs in NAMES.items():
            weight = tensors[f"{prefix}{ours}.weight"]
            state[f"model.layers.{layer}.{theirs}.weight"] = halves(weight, heads[ours]) if ours in heads else weight
    model: Any = LlamaForCausalLM(config)
    model.to(dtype or tensors["norm.weight"].dtype)
    model.load_state_dict(state, strict=True)
    return model.eval().requires_grad_(False)


NAMES = {
    **{f"attention.w{x}": f"self_attn.{x}_proj" for x in "qkvo"},
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def halves(weight: Tensor, heads: int) -> Tensor:
    """Rows of a query or key projection from neighbouring pairs (Meta) to two halves (transformers), head by head."""
    out, width = weight.shape
    return weight.view(heads, out // heads // 2, 2, width).transpose(1, 2).reshape(out, width)


LAYOUTS = (Layout("parallel heads of Meta", lambda checkpoint: checkpoint.is_metas, load),)
