"""The models of the test servers, and the sampling policy: a Markov chain of order two over forty words, or a
checkpoint of `refengine fixtures export`, computed in numpy from its file."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf
from typing import Any

WORDS = [f" {a}{b}" for a in "bdfgklmn" for b in ("a", "e", "ino", "u", "olt")]
V, GAMMA, END = len(WORDS), 3, 0  # of the chain; of a block


def logits(context: list[int], noise: float = 0.0) -> list[float]:
    """Of the next token, from the last two; `noise` makes the draft model."""
    return _logits(tuple(context[-2:]), noise)


@cache
def _logits(last: tuple[int, ...], noise: float) -> list[float]:
    source = random.Random(f"{list(last)}")
    row = [source.gauss(0.0, 1.6) for _ in range(V)]
    row[END] -= 1.0
    return [x + noise * source.gauss(0.0, 1.0) for x in row] if noise else row


@dataclass(frozen=True)
class Language:
    """words, with the blank before them; end: the id that ends a text; logits(context, noise), noise for the draft."""

    words: Sequence[str]
    end: int
    logits: Callable[[list[int], float], list[float]]
    prompt_counts: bool = False  # whether the repetition penalty counts the prompt

    def ids_of(self, text: str) -> list[int]:
        known = {word.strip(): i for i, word in enumerate(self.words)}
        return [known.get(w, sum(w.encode()) % len(self.words)) for w in text.split()]


MARKOV = Language(WORDS, END, logits)


def shaped(
    row: list[float], body: dict[str, Any], out: list[int], least: int, language: Language = MARKOV
) -> list[float]:
    """Probabilities after the policy; at temperature 0 a point."""
    row, size = list(row), len(row)
    for i, value in (body.get("logit_bias") or {}).items():
        row[int(i)] += value
    for x in set(body.get("prompt ids", []) if language.prompt_counts else []) - set(out):
        scale = body.get("repetition_penalty", 1.0)
        row[x] = row[x] / scale if row[x] > 0 else row[x] * scale
    for x in set(out):
        count = out.count(x)
        row[x] -= body.get("frequency_penalty", 0.0) * count + body.get("presence_penalty", 0.0)
        scale = body.get("repetition_penalty", 1.0)
        row[x] = row[x] / scale if row[x] > 0 else row[x] * scale
    allowed = body.get("allowed_token_ids")
    for i in range(size):
        banned = any(language.words[i].strip() == w.strip() for w in body.get("bad_words") or ())
        if (allowed is not None and i not in allowed) or banned or (i == language.end and len(out) < least):
            row[i] = -inf
    temperature = body.get("temperature", 1.0)
    if temperature == 0:
        best = max(range(size), key=lambda i: (row[i], -i))
        return [float(i == best) for i in range(size)]
    top = max(row)
    weights = [exp((x - top) / temperature) for x in row]
    order = sorted(range(size), key=lambda i: -weights[i])
    total = sum(weights)
    keep, mass = set(), 0.0
    for rank, i in enumerate(order):
        if (
            rank < (body.get("top_k") or size)
            and mass < body.get("top_p", 1.0)
            and weights[i] >= body.get("min_p", 0.0) * weights[order[0]]
        ):
            keep.add(i)
        mass += weights[i] / total
    weights = [w if i in keep else 0.0 for i, w in enumerate(weights)]
    total = sum(weights)
    return [w / total for w in weights]


def draw(row: list[float], chance: random.Random) -> int:
    return chance.choices(range(len(row)), row)[0]
