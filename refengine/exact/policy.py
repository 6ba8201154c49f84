"""Policies: from the model's weights to the row that is sampled from. Exact, so on weights rather than logits.

A policy is `policy(weights, prompt, prefix) -> weights`, `weights[x] = exp(logit x)` up to one common factor for the
filters, exactly for the repetition penalty (which looks at the sign of the logit, that is at weight > 1). `prefix` is
everything after the prompt, drafted tokens on this path included. Policies compose left to right with `pipeline`; the
last step of a pipeline is always renormalisation.

Orders and ties, which engines differ in and which therefore are stated:
* temperature 1/n raises weights to the n-th power (exact); other temperatures are applied before the row reaches us;
* top-k keeps k tokens, ties to the lowest id; top-p keeps the smallest head whose mass reaches p, heavier first, ties
  to the lowest id, and the token that crosses p is kept; min-p keeps weights >= min_p * the heaviest.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from refengine.exact.row import Row, argmax, normalised, point

Tokens: TypeAlias = tuple[int, ...]
Weights: TypeAlias = Sequence[Fraction]
Policy: TypeAlias = Callable[[Weights, Tokens, Tokens], tuple[Fraction, ...]]


def pipeline(*steps: Policy) -> Callable[[Weights, Tokens, Tokens], Row]:
    """The steps from left to right, then renormalisation."""

    def policy(weights: Weights, prompt: Tokens, prefix: Tokens) -> Row:
        for step in steps:
            weights = step(weights, prompt, prefix)
        return normalised([Fraction(w) for w in weights])

    return policy


def greedy() -> Policy:
    """All mass on the heaviest token, ties to the lowest id: the limit of temperature to 0. No mass stays no mass."""
    return lambda weights, prompt, prefix: point(argmax(weights), len(weights)) if any(weights) else tuple(weights)


def temperature(inverse: int) -> Policy:
    """Temperature 1 / inverse."""
    if inverse < 1:
        raise ValueError(f"exact temperatures are 1/1, 1/2, 1/3 ...: 1/{inverse} is none of them")
    return lambda weights, prompt, prefix: tuple(Fraction(w) ** inverse for w in weights)


def top_k(k: int) -> Policy:
    """Keep the k heaviest tokens."""
    if k < 1:
        raise ValueError(f"top_k keeps at least one token, got {k}")
    return lambda weights, prompt, prefix: _keep(weights, _heaviest_first(weights)[:k])


def top_p(p: Fraction) -> Policy:
    """Keep the smallest head whose share of the mass is at least p."""
    if not 0 < p <= 1:
        raise ValueError(f"top_p lies in (0, 1], got {p}")

    def policy(weights: Weights, prompt: Tokens, prefix: Tokens) -> tuple[Fraction, ...]:
        total, mass, kept = sum(weights), Fraction(0), []
        for x in _heaviest_first(weights):
            kept.append(x)
            mass += weights[x]
            if mass >= p * total:
                break
        return _keep(weights, kept)

    return policy


def min_p(share: Fraction) -> Policy:
    """Keep tokens whose weight is at least `share` of the heaviest."""
    if not 0 <= share <= 1:
        raise ValueError(f"min_p lies in [0, 1], got {share}")
    return lambda weights, prompt, prefix: _keep(
        weights, [x for x, w in enumerate(weights) if w >= share * max(weights)]
    )


def repetition_penalty(penalty: int) -> Policy:
    """Keskar et al. 2019 at an integer penalty, over prompt and prefix: a seen token's logit is divided when positive
    and multiplied when negative. Exact only where the root exists; otherwise a ValueError names the token."""

    def penalised(weight: Fraction, token: int) -> Fraction:
        if weight <= 1:
            return Fraction(weight**penalty)
        return Fraction(_root(weight.numerator, penalty, token), _root(weight.denominator, penalty, token))

    return lambda weights, prompt, prefix: tuple(
        penalised(Fraction(w), x) if x in prompt + prefix else Fraction(w) for x, w in enumerate(weights)
    )


def presence_penalty(factor: Fraction) -> Policy:
    """Weights of tokens already generated are multiplied once by exp(-penalty). The prompt is not counted."""
    return lambda weights, prompt, prefix: tuple(w * factor if x in prefix else w for x, w in enumerate(weights))


def frequency_penalty(factor: Fraction) -> Policy:
    """As presence_penalty, once per occurrence."""
    return lambda weights, prompt, prefix: tuple(w * factor ** prefix.count(x) for x, w in enumerate(weights))


def logit_bias(factors: Mapping[int, Fraction]) -> Policy:
    """Multiply the weights of single tokens by exp(bias); 0 bans a token."""
    return lambda weights, prompt, prefix: tuple(w * factors.get(x, 1) for x, w in enumerate(weights))


def bad_words(words: Sequence[Tokens]) -> Policy:
    """Ban the token that would complete a forbidden sequence, the prompt counting as context."""
    if not all(words):
        raise ValueError("a forbidden sequence has at least one token")

    def policy(weights: Weights, prompt: Tokens, prefix: Tokens) -> tuple[Fraction, ...]:
        seen = prompt + prefix
        banned = {word[-1] for word in words if seen[len(seen) - len(word) + 1 :] == word[:-1]}
        return tuple(Fraction(0) if x in banned else w for x, w in enumerate(weights))

    return policy


def grammar(transitions: Mapping[int, Mapping[int, int]], start: int = 0) -> Policy:
    """A finite-state mask over the prefix: transitions[state][token] is the next state; what is absent is banned.

    A drafter may propose a banned token, and then rows after it are asked for. None of them can ever be used, because
    the banned token is refused; they are left as they are.
    """

    def policy(weights: Weights, prompt: Tokens, prefix: Tokens) -> tuple[Fraction, ...]:
        state = start
        for token in prefix:
            if token not in transitions[state]:
                return tuple(weights)
            state = transitions[state][token]
        return tuple(w if x in transitions[state] else Fraction(0) for x, w in enumerate(weights))

    return policy


def _heaviest_first(weights: Weights) -> list[int]:
    return sorted(range(len(weights)), key=lambda x: (-weights[x], x))


def _keep(weights: Weights, kept: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(w if x in kept else Fraction(0) for x, w in enumerate(weights))


def _root(value: int, degree: int, token: int) -> int:
    root: int = round(float(value) ** (1 / degree))
    for candidate in (root - 1, root, root + 1):
        if candidate**degree == value:
            return candidate
    raise ValueError(f"token {token}: the repetition penalty has no exact value (no rational {degree}th root)")
