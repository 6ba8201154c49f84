"""The models of the test servers, and the sampling policy: a Markov chain of order two over forty words, or a
checkpoint of `refengine fixtures export`, computed in numpy from its file."""

import random
from bisect import bisect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from math import exp, inf
from typing import Any

from properties.helpers.served.grammar import JSON, following, form_of

CHAIN = [f" {a}{b}" for a in "bdfgklmn" for b in ("a", "e", "ino", "u", "olt")]
WORDS = [*CHAIN, *JSON]
V, GAMMA, END = len(CHAIN), 3, 0  # of the chain; of a block
SELDOM = -7.0  # the logit of a word of JSON


class Row(list[float]):
    """A row that is made once, wanted often and never changed: it is known by itself, not by its numbers."""

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    @cached_property
    def cumulative(self) -> list[float]:
        return list(accumulate(self))


def known(row: list[float]) -> Hashable:
    """What a row is remembered by."""
    return row if isinstance(row, Row) else tuple(row)


def logits(context: list[int], noise: float = 0.0) -> list[float]:
    """Of the next token, from the last two; `noise` makes the draft model."""
    return _logits(tuple(context[-2:]), noise)


@cache
def _logits(last: tuple[int, ...], noise: float) -> list[float]:
    source = random.Random(f"{list(last)}")
    row = [source.gauss(0.0, 1.6) for _ in range(V)]
    row[END] -= 1.0
    row = [x + noise * source.gauss(0.0, 1.0) for x in row] if noise else row
    source = random.Random(f"{list(last)} {noise}")
    return Row([*row, *(SELDOM + source.gauss(0.0, 0.5) for _ in JSON)])


@dataclass(frozen=True, eq=False)
class Language:
    """words, with the blank before them; end: the id that ends a text; logits(context, noise), noise for the draft."""

    words: Sequence[str]
    end: int
    logits: Callable[[list[int], float], list[float]]
    prompt_counts: bool = False  # whether the repetition penalty counts the prompt
    json: bool = False  # whether it has the words of JSON

    def ids_of(self, text: str) -> list[int]:
        known = {word.strip(): i for i, word in enumerate(self.words)}
        size = len(self.words) - len(JSON) * self.json
        return [known.get(w, sum(w.encode()) % size) for w in text.split()]


MARKOV = Language(WORDS, END, logits, json=True)
EVENLY = 6  # contexts of which one has two tokens that nothing tells apart


def tied(context: list[int], noise: float = 0.0) -> list[float]:
    """The same chain, with ties at the top."""
    row = list(logits(context))
    if random.Random(f"tie {context[-2:]}").randrange(EVENLY) == 0:
        first, second = sorted(range(V), key=lambda i: -row[i])[:2]
        row[second] = row[first]
    source = random.Random(f"{context[-2:]}, drafted")
    return [x + noise * source.gauss(0.0, 1.0) for x in row] if noise else row


TIED = Language(WORDS, END, tied, json=True)


PENALTIES = ("frequency_penalty", "presence_penalty", "repetition_penalty")
FILTERS = ("top_k", "top_p", "min_p")
MEMORY = (*PENALTIES, "response_format", "tools")  # of what was said
MEMORYLESS = ("temperature", *FILTERS, "logit_bias", "allowed_token_ids", "bad_words", "ignore_eos")
MOST_SHAPED = 1 << 14
NOTHING = -1  # between a prompt and its answer
shaped_before: dict[tuple[Any, ...], Row] = {}  # each is wanted to draft, to verify and to report


class Asked(dict[str, Any]):
    """A request whose policy stays as it is; a copy that is changed is a plain dict."""

    @cached_property
    def policy(self) -> tuple[bool, str]:
        return policy_of(self)


def policy_of(body: dict[str, Any]) -> tuple[bool, str]:
    """(whether what was said moves the row, the policy in words)."""
    remembers = not body.keys().isdisjoint(MEMORY) or any(" " in word.strip() for word in body.get("bad_words") or ())
    told = [f"{name} {body[name]}" for name in (*MEMORYLESS, *MEMORY, "grammar state") if name in body]
    return remembers, "\n".join(told)


def shaped(row: list[float], body: dict[str, Any], out: list[int], least: int, language: Language = MARKOV) -> Row:
    """Probabilities after the policy; at temperature 0 a point. Not to be changed."""
    remembers, policy = body.policy if isinstance(body, Asked) else policy_of(body)
    said = (*body.get("prompt ids", []), NOTHING, *out) if remembers else ()
    key = (known(row), said, len(out) < least, language, policy)
    made = shaped_before.get(key)
    if made is None:
        if len(shaped_before) > MOST_SHAPED:
            shaped_before.clear()
        made = shaped_before[key] = Row(_shaped(row, body, out, least, language))
    return made


def _shaped(row: list[float], body: dict[str, Any], out: list[int], least: int, language: Language) -> list[float]:
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
    form = form_of(body)
    if form is not None:
        words = following(form, [language.words[x] for x in body.get("grammar state", out)])
        allowed = [i for i, word in enumerate(language.words) if ("" if i == language.end else word) in words]
    if allowed is not None:
        row = [x if i in allowed else -inf for i, x in enumerate(row)]
    if body.get("bad_words"):
        banned = banned_after(body["bad_words"], [language.words[x].strip() for x in out])
        row = [-inf if language.words[i].strip() in banned else x for i, x in enumerate(row)]
    if len(out) < least or body.get("ignore_eos"):
        row[language.end] = -inf
    temperature, top = body.get("temperature", 1.0), max(row)
    if temperature == 0:
        best = row.index(top)
        return [float(i == best) for i in range(size)]
    weights = [exp((x - top) / temperature) for x in row]
    if body.get("top_k") or body.get("top_p", 1.0) < 1.0 or body.get("min_p"):
        kept = _filtered(weights, body)
        weights = [w if i in kept else 0.0 for i, w in enumerate(weights)]
    total = sum(weights)
    return [w / total for w in weights]


def banned_after(told: Sequence[str], said: Sequence[str]) -> set[str]:
    """Words that may not come next: of a phrase the last one, where the others were just said."""
    phrases = [words for phrase in told if (words := phrase.split())]
    return {words[-1] for words in phrases if list(said[len(said) - len(words) + 1 :]) == words[:-1]}


def _filtered(weights: list[float], body: dict[str, Any]) -> set[int]:
    """The ids that the filters keep."""
    order = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)
    total, most, least = sum(weights), body.get("top_p", 1.0), body.get("min_p", 0.0) * weights[order[0]]
    keep, mass = set(), 0.0
    for i in order[: body.get("top_k") or None]:
        if mass < most and weights[i] >= least:
            keep.add(i)
        mass += weights[i] / total
    return keep


def draw(row: list[float], chance: random.Random) -> int:
    """As random.choices does, which would add up a row that is known anew."""
    cumulative = row.cumulative if isinstance(row, Row) else list(accumulate(row))
    return bisect(cumulative, chance.random() * cumulative[-1], 0, len(row) - 1)
