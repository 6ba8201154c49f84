"""Tiny transformers models with fixed weights, made on the spot: nothing is downloaded, everything is float64.

Double precision takes the arithmetic out of the question: a verify pass over several tokens and a pass over one then
give the same float32 logits, and what is left of a difference between two laws is the algorithm's.
"""

from collections.abc import Callable
from typing import Any, TypeAlias
from unittest.mock import patch

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizer

from refengine.audit.sandbox.child import subject_code

HIDDEN = 8
SPREAD = 0.5  # of the output weights: rows neither flat nor peaked, so that drafts are kept and rejected alike


def llama(vocabulary: int, seed: int, layers: int = 1) -> Any:
    """A Llama with random weights that depend on `seed` alone."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=None,
    )
    with subject_code():
        model = LlamaForCausalLM(config)
    return _filled(model, seed)


def _filled(model: Any, seed: int) -> Any:
    """Random matrices, filled in the order of their names; norms stay at one."""
    model = model.double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.dim() == 2:
                spread = SPREAD if name.startswith("lm_head") else 1.0
                weight.copy_(spread * torch.randn(weight.shape, generator=generator, dtype=torch.float64))
    return model


class Words(PreTrainedTokenizer):
    """A tokenizer over single words whose `get_vocab` comes in a given order.

    Tokenizers written in Rust list their vocabulary in the order of a hash table with a random key, which is another
    order in each process. Here the order is an input.
    """

    def __init__(self, vocabulary: dict[str, int], **kwargs: Any) -> None:
        self._vocabulary = dict(vocabulary)
        self._words = {number: word for word, number in vocabulary.items()}
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]

    @property
    def vocab_size(self) -> int:
        return len(self._vocabulary)

    def get_vocab(self) -> dict[str, int]:
        return dict(self._vocabulary)

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return text.split()

    def _convert_token_to_id(self, token: str) -> int:
        return self._vocabulary.get(token, 0)  # the other tokenizer's extra word has to become something

    def _convert_id_to_token(self, index: int) -> str:
        return self._words[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return " ".join(tokens)


# --- ways of speculating ---------------------------------------------------------------------------------------------

Subject: TypeAlias = tuple[Any, dict[str, Any]]  # the target model, and what turns speculation on


def draft_model(vocabulary: int) -> Subject:
    """A separate draft model that drafts two tokens whatever its confidence."""
    return llama(vocabulary, 0), {"assistant_model": _eager(llama(vocabulary, 1))}


def draft_model_defaults(vocabulary: int) -> Subject:
    """The library's own defaults: up to 20 tokens, stopping after one whose probability is below 0.4."""
    return llama(vocabulary, 0), {"assistant_model": llama(vocabulary, 1)}


def prompt_lookup(vocabulary: int) -> Subject:
    return llama(vocabulary, 0), {"prompt_lookup_num_tokens": 2}


def early_exit(vocabulary: int) -> Subject:
    """The first of two layers drafts for both."""
    return _eager(llama(vocabulary, 0, layers=2)), {"assistant_early_exit": 1}


def two_tokenizers(vocabulary: int, in_id_order: bool = False) -> Subject:
    """The assistant knows every word of the target under another number, and one word more."""
    words = [f"w{i}" for i in range(vocabulary)]
    theirs = ["extra", *words]
    if not in_id_order:
        theirs.append(theirs.pop(1))  # ids stay as they are; `get_vocab` lists the first word last
    ids = {"extra": 0} | {word: i + 1 for i, word in enumerate(words)}
    target = llama(vocabulary, 0)
    return target, {
        "assistant_model": _eager(_with_extra_word(target, vocabulary)),
        "tokenizer": Words({word: i for i, word in enumerate(words)}),
        "assistant_tokenizer": Words({word: ids[word] for word in theirs}),
    }


def _with_extra_word(target: Any, vocabulary: int) -> Any:
    """A draft model that resembles the target, so that drafts are kept although its token 0 is a word of its own."""
    assistant = llama(vocabulary + 1, 1)
    theirs = dict(target.named_parameters())
    with torch.no_grad():
        for name, weight in assistant.named_parameters():
            known = weight[1:] if "embed_tokens" in name or "lm_head" in name else weight
            known.copy_(0.7 * theirs[name] + 0.3 * known)
    return assistant


def gemma_assistant(vocabulary: int) -> Subject:
    """A Gemma-4 target whose later layers share key-value states, and the assistant that reads them."""
    from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4ForCausalLM, Gemma4TextConfig

    shape: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": HIDDEN,
        "global_head_dim": HIDDEN,
        "num_kv_shared_layers": 2,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    two = ["sliding_attention", "full_attention"]
    stores: dict[str, Any] = {"num_hidden_layers": 4, "layer_types": two * 2, "hidden_size_per_layer_input": HIDDEN}
    reads: dict[str, Any] = {"num_hidden_layers": 2, "layer_types": two, "hidden_size_per_layer_input": 0}
    with subject_code():
        target = Gemma4ForCausalLM(Gemma4TextConfig(**shape, **stores, vocab_size_per_layer_input=vocabulary))
        reader = Gemma4TextConfig(**shape, **reads, vocab_size_per_layer_input=0)
        config = Gemma4AssistantConfig(text_config=reader, backbone_hidden_size=HIDDEN)
        assistant = Gemma4AssistantForCausalLM(config)
    return _filled(target, 0), {"assistant_model": _eager(_filled(assistant, 1))}


def gemma_assistant_made_constructible(vocabulary: int) -> Subject:
    """The same, with the one property overridden that refuses a model all of whose layers share (5.23)."""
    from transformers import Gemma4TextConfig

    released: Any = Gemma4TextConfig.__dict__["kv_sharing_modes"]

    def sharing(config: Any) -> Any:
        everywhere = config.num_kv_shared_layers == config.num_hidden_layers
        return ["reuse"] * config.num_hidden_layers if everywhere else released.fget(config)

    with patch.object(Gemma4TextConfig, "kv_sharing_modes", property(sharing)):
        return gemma_assistant(vocabulary)


WAYS: dict[str, Callable[[int], Subject]] = {
    "draft model": draft_model,
    "draft model, defaults": draft_model_defaults,
    "prompt lookup": prompt_lookup,
    "early exit": early_exit,
    "two tokenizers": two_tokenizers,
    "two tokenizers, in id order": lambda vocabulary: two_tokenizers(vocabulary, in_id_order=True),
    "Gemma-4 assistant": gemma_assistant,
    "Gemma-4 assistant, made constructible": gemma_assistant_made_constructible,
}


def _eager(model: Any) -> Any:
    """Draft two tokens, however unsure. The default threshold would end most drafts after one."""
    model.generation_config.num_assistant_tokens = 2
    model.generation_config.assistant_confidence_threshold = 0.0
    return model
