"""transformers' own generate() over the tiny pair. Runs under the engine's Python: `speak.py` says what is here."""

import json
import shutil
from pathlib import Path
from typing import Any

DRAFTED = 3
LOOKUP = {"prompt_lookup_num_tokens": DRAFTED, "max_matching_ngram_size": 2}


def convert(source: str, folder: str) -> None:
    """Its own layout is the source's. lookup/ is the target with speculation in its generation_config.json, which is
    how its server is told."""
    for part, name in (("target", "target"), ("drafter", "drafter"), ("target", "lookup")):
        shutil.copytree(Path(source) / part, Path(folder) / name)
    told = Path(folder) / "lookup" / "generation_config.json"
    told.write_text(json.dumps(json.loads(told.read_text()) | LOOKUP, indent=1) + "\n")


def opened(folder: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    target, drafter = (
        AutoModelForCausalLM.from_pretrained(Path(folder) / part, dtype=torch.float32).eval()
        for part in ("target", "drafter")
    )
    words = AutoTokenizer.from_pretrained(Path(folder) / "target")
    vocabulary = target.config.vocab_size
    drafter.generation_config.num_assistant_tokens = DRAFTED
    drafter.generation_config.assistant_confidence_threshold = 0.0
    target.generation_config.num_assistant_tokens = DRAFTED
    target.generation_config.assistant_confidence_threshold = 0.0
    ways: dict[str, dict[str, Any]] = {
        "": {},
        "draft model": {"assistant_model": drafter},
        "prompt lookup": LOOKUP,
        "early exit": {"assistant_early_exit": 1},
    }

    def generate(
        way: str,
        prompt: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        min_tokens: int | None = None,
        bad_words: list[list[int]] | None = None,
        logit_bias: dict[str, float] | None = None,
        allowed_token_ids: list[int] | None = None,
        stop: list[str] | None = None,
    ) -> list[int]:
        policy: dict[str, Any] = {"repetition_penalty": repetition_penalty, "do_sample": temperature > 0}
        if temperature > 0:
            policy |= {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        if min_tokens is not None:
            policy["min_new_tokens"] = min_tokens
        if bad_words is not None:
            policy["bad_words_ids"] = bad_words
        if logit_bias is not None:
            policy["sequence_bias"] = [[[int(token)], float(value)] for token, value in logit_bias.items()]
        if allowed_token_ids is not None:
            policy["suppress_tokens"] = [t for t in range(vocabulary) if t not in allowed_token_ids]
        if stop is not None:
            policy |= {"stop_strings": stop, "tokenizer": words}
        torch.manual_seed(seed)
        ids = torch.tensor([prompt])
        with torch.inference_mode():
            out = target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=tokens,
                pad_token_id=target.config.eos_token_id,
                **(policy | ways[way]),
            )
        return [int(token) for token in out[0, len(prompt) :]]

    return generate
