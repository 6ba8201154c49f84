"""The cells of generation: ways of speculating, and the sampling parameters that each must respect."""

from dataclasses import dataclass, field
from typing import Any

# By vocabulary: prompts that repeat themselves, with continuations that the target likes, so that lookups are kept.
PROMPTS = {2: (0, 1, 0, 1), 3: (0, 1, 2, 1)}


@dataclass(frozen=True)
class Cell:
    """One way of speculating under one policy, on one tiny model.

    way         how candidates are made: a key of `tiny_models.WAYS`
    policy      keyword arguments of generate(), the same with speculation on and off
    sampling    compare exact laws; otherwise greedy outputs over every prompt of three tokens (two under a policy)
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

    @property
    def prompt(self) -> tuple[int, ...]:
        """Sampling starts here. Where repetition counts, some token must not have been said yet."""
        return (0, 0, 0) if "repetition_penalty" in self.policy else PROMPTS[self.vocabulary]


WAYS = (
    Cell("draft-model", "draft model", vocabulary=3),
    Cell("draft-model-defaults", "draft model, defaults"),
    Cell("prompt-lookup", "prompt lookup"),
    Cell("early-exit", "early exit"),
    Cell("two-tokenizers", "two tokenizers"),
    Cell("two-tokenizers-in-id-order", "two tokenizers, in id order"),
    Cell("gemma-4-assistant", "Gemma-4 assistant"),
    Cell("gemma-4-assistant-made-constructible", "Gemma-4 assistant, made constructible"),
    Cell("ensemble-weight", "draft model", settings={"assistant_ensemble_weight": 0.5}, mixture=0.5),
)

# Where a policy leaves few tokens a vocabulary of 3 is as cheap as one of 2, and a mask shows.
POLICIES: dict[str, tuple[int, dict[str, Any]]] = {
    "temperature": (2, {"temperature": 0.5}),
    "top-k": (3, {"top_k": 2}),
    "top-p": (3, {"top_p": 0.95}),
    "min-p": (3, {"min_p": 0.1}),
    "typical-p": (3, {"typical_p": 0.95}),
    "repetition-penalty": (2, {"repetition_penalty": 1.5}),
    "no-repeat-ngram": (3, {"no_repeat_ngram_size": 3}),
    "bad-words": (3, {"bad_words_ids": [[1]]}),
    "sequence-bias": (2, {"sequence_bias": [[[1], 1.5]]}),
    "eos": (2, {"eos_token_id": 1}),
    "min-new-tokens": (3, {"eos_token_id": 1, "min_new_tokens": 2}),
    "length-penalty": (2, {"eos_token_id": 1, "exponential_decay_length_penalty": (0, 2.0)}),
    "forced-eos": (2, {"forced_eos_token_id": 0}),
    "stop-strings": (2, {"stop_strings": ["w1", "w2 w2 w2"]}),
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
    """Every lossless way, and the policies that depend on what was generated before."""
    ways = [
        Cell(f"greedy/{c.name}", c.way, sampling=False, vocabulary=3, new_tokens=6) for c in WAYS if c.mixture is None
    ]
    parity = [
        Cell(f"greedy/{way.replace(' ', '-')}/{name}", way, POLICIES[name][1], False, vocabulary=3, new_tokens=6)
        for way in ("draft model", "prompt lookup")
        for name in ("repetition-penalty", "no-repeat-ngram", "eos", "min-new-tokens", "stop-strings", "guidance-scale")
    ]
    return [*ways, *parity]


CELLS = {cell.name: cell for cell in (*WAYS, *_parity(), *_greedy())}
