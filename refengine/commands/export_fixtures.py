"""A tiny target and drafter whose law is computable here, in the layout that engines load.

Llama in transformers' layout with a tokenizer of single words. The weights are random, rounded to bfloat16 so that an
engine that loads them in half precision has the same ones; the drafter is the target's first layer, so that drafts are
kept and refused alike. `law.json` says in words how the law of every token follows.
"""

import json
from pathlib import Path
from typing import Any

import torch

from refengine.audit.served.known.law import FILE, VERSION
from refengine.errors import BadInput
from refengine.files import check_empty

WORDS, END, UNKNOWN = 64, 1, 0  # what vocabularies are padded to; ids of the end and of a word that is none
HIDDEN, LAYERS, LENGTH = 64, 2, 512
SPREAD, KEPT = 0.22, 0.35  # of the output weights: 2 to 3 nats a token; of the second layer beside the first
PROMPTS = ("w7 w9 w11", "w20 w21 w22 w23", "w40 w5 w5 w40", "w63 w2 w33 w34 w35", "w12 w50", "w8 w16 w32")
HOW = (
    "Token ids are those of the words, which are separated by blanks; no token is put before a prompt.",
    "The logits of the next token are those of the network in target/, computed over prompt and text.",
    "logit_bias is added; words in bad_words, ids not in allowed_token_ids, and the end below min_tokens are banned.",
    "repetition_penalty divides positive and multiplies other logits of every token of prompt and text;"
    " frequency_penalty is subtracted for each time, and presence_penalty once, that a token stands in the text alone.",
    "All is divided by the temperature; at temperature 0 the heaviest logit is taken, ties to the lowest id.",
    "min_p keeps what has that share of the heaviest, then top_k the heaviest, then top_p the smallest head.",
    "The token is drawn from the softmax of what is left. Speculation with drafter/ changes nothing of this.",
    "Serve it in float32 (vLLM and SGLang: --dtype float32): half precision moves a row by one part in a hundred.",
)


def export_fixtures(folder: Path, seed: int = 0) -> None:
    """Write target/, drafter/ and law.json. Raises BadInput where the folder has something in it."""
    try:
        check_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        words = ["<unk>", "</s>", *(f"w{i}" for i in range(2, WORDS))]
        tensors = _tensors(seed)
        for part, layers in (("target", LAYERS), ("drafter", 1)):
            _write(folder / part, {n: t for n, t in tensors.items() if _layer(n) < layers}, layers, words)
        told = {"version": VERSION, "words": words, "end": END, "prompts": list(PROMPTS), "how": list(HOW)}
        (folder / FILE).write_text(json.dumps(told, indent=1) + "\n")
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}") from None


def _config(layers: int) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=WORDS,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=HIDDEN,
        max_position_embeddings=LENGTH,
        bos_token_id=None,
        eos_token_id=END,
        tie_word_embeddings=False,
        architectures=["LlamaForCausalLM"],
        dtype="float32",
    )


def _tensors(seed: int) -> dict[str, torch.Tensor]:
    """The target's weights, in the order of their names."""
    from transformers import LlamaForCausalLM

    generator, made = torch.Generator().manual_seed(seed), {}
    for name, weight in sorted(LlamaForCausalLM(_config(LAYERS)).state_dict().items()):
        value = torch.ones(weight.shape)
        if weight.dim() == 2:
            value = torch.randn(weight.shape, generator=generator) * _spread(name, weight.shape[1])
        made[name] = value.bfloat16().float().contiguous()
    return made


def _spread(name: str, width: int) -> float:
    if name.startswith(("lm_head", "model.embed")):
        return SPREAD if name.startswith("lm_head") else 1.0
    last = name.endswith(("o_proj.weight", "down_proj.weight"))
    return float(width**-0.5 * (2.0 if not last else KEPT * 2 if _layer(name) else 2.0))


def _layer(name: str) -> int:
    """The number of the layer that a tensor belongs to; 0 for what belongs to none."""
    return int(name.split(".")[2]) if name.startswith("model.layers.") else 0


def _write(folder: Path, tensors: dict[str, torch.Tensor], layers: int, words: list[str]) -> None:
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder.mkdir()
    config = _config(layers)
    config.save_pretrained(folder)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # a server may run as somebody else
    generation = {"eos_token_id": END, "do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[UNKNOWN]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([words[UNKNOWN], words[END]])
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": words[UNKNOWN],
        "eos_token": words[END],
        "clean_up_tokenization_spaces": False,
        "model_max_length": LENGTH,
        "chat_template": "{% for turn in messages %}{{ turn['content'] }} {% endfor %}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(told, indent=1) + "\n")
