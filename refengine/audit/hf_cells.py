"""What `refengine audit generate hf` runs: ways of speculating, and the sampling parameters that each must respect."""

from dataclasses import dataclass, field
from typing import Any

DEFAULT_PROMPT = (0, 1, 0, 1)  # repeats itself, so that prompt lookup has something to look up


@dataclass(frozen=True)
class Cell:
    """One way of speculating under one policy, on one tiny model.

    way         how candidates are made: a key of `hf_models.WAYS`
    policy      keyword arguments of generate(), the same with speculation on and off
    sampling    compare exact laws; otherwise compare greedy outputs over every prompt of four tokens
    new_tokens  how many tokens are generated: the law is over all of them together
    settings    further keyword arguments with speculation on
    mixture     w where the promise is a first token from w p + (1 - w) q instead of p
    """

    name: str
    way: str
    policy: dict[str, Any] = field(default_factory=dict)
    sampling: bool = True
    vocabulary: int = 2
    new_tokens: int = 3
    settings: dict[str, Any] = field(default_factory=dict)
    mixture: float | None = None


WAYS = (
    Cell("draft-model", "draft model", vocabulary=3),
    Cell("draft-model-defaults", "draft model, defaults"),
    Cell("prompt-lookup", "prompt lookup"),
    Cell("early-exit", "early exit"),
    Cell("two-tokenizers", "two tokenizers"),
    Cell("two-tokenizers-in-id-order", "two tokenizers, in id order"),
    Cell("gemma-4-assistant", "Gemma-4 assistant"),
    Cell("ensemble-weight", "draft model", settings={"assistant_ensemble_weight": 0.5}, mixture=0.5),
)

# Where a policy leaves few tokens a vocabulary of 3 is as cheap as one of 2, and a mask shows.
POLICIES: dict[str, tuple[int, dict[str, Any]]] = {
    "temperature": (2, {"temperature": 0.5}),
    "top-k": (3, {"top_k": 2}),
    "top-p": (3, {"top_p": 0.7}),
    "min-p": (3, {"min_p": 0.3}),
    "typical-p": (3, {"typical_p": 0.7}),
    "repetition-penalty": (2, {"repetition_penalty": 1.5}),
    "no-repeat-ngram": (3, {"no_repeat_ngram_size": 2}),
    "bad-words": (3, {"bad_words_ids": [[1]]}),
    "sequence-bias": (2, {"sequence_bias": [[[1], 1.5]]}),
    "eos": (2, {"eos_token_id": 1}),
    "min-new-tokens": (3, {"eos_token_id": 1, "min_new_tokens": 2}),
    "length-penalty": (2, {"eos_token_id": 1, "exponential_decay_length_penalty": (1, 1.5)}),
    "forced-eos": (2, {"forced_eos_token_id": 0}),
    "guidance-scale": (2, {"guidance_scale": 1.5}),
}


def _parity() -> list[Cell]:
    """Every policy under the two ways that need nothing but the model or a draft model."""
    return [
        Cell(f"{way.replace(' ', '-')}/{name}", way, policy, vocabulary=vocabulary)
        for way in ("draft model", "prompt lookup")
        for name, (vocabulary, policy) in POLICIES.items()
    ]


def _greedy() -> list[Cell]:
    ways = [
        Cell(f"greedy/{c.name}", c.way, sampling=False, vocabulary=3, new_tokens=6) for c in WAYS if c.mixture is None
    ]
    histories = ("repetition-penalty", "no-repeat-ngram", "eos", "min-new-tokens", "guidance-scale")
    parity = [
        Cell(f"greedy/draft-model/{name}", "draft model", POLICIES[name][1], sampling=False, vocabulary=3, new_tokens=6)
        for name in histories
    ]
    return [*ways, *parity]


CELLS = {cell.name: cell for cell in (*WAYS, *_parity(), *_greedy())}
