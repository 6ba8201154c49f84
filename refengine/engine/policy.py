"""Policies: from the model's logits to the row that is sampled from. The float twins of `refengine.exact.policy`.

A policy is `policy(logits, prompt, prefix) -> row`, for one node at a time:

    logits  float [V], as the model gives them; -inf bans a token
    prompt  the tokens of the prompt
    prefix  everything after the prompt, drafted tokens on this path included
    row     float [V] of the same dtype: probabilities

A *step* has the same arguments and returns logits; `pipeline(*steps)` is a policy: the steps from left to right, then
one softmax. Where every step is `Textless`, many rows [..., V] may be given at once. Orders and ties are those of the
exact text: top-k keeps k tokens, ties to the lowest id; top-p keeps the smallest head whose mass reaches p, heavier
first, ties to the lowest id, the token that crosses p included; min-p keeps what has at least min_p times the heaviest
probability. Logits are log weights: where the exact text multiplies weights by a factor, here a penalty is subtracted.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

import torch
from torch import Tensor

Tokens: TypeAlias = tuple[int, ...]
Step: TypeAlias = Callable[[Tensor, Tokens, Tokens], Tensor]
Policy: TypeAlias = Callable[[Tensor, Tokens, Tokens], Tensor]

BANNED = float("-inf")


class NothingLeft(ValueError):
    """A policy bans every token."""


@dataclass(frozen=True)
class Textless:
    """A step that looks at no text, on rows [..., V]: what it does to one does not depend on the others."""

    of: Callable[[Tensor], Tensor]

    def __call__(self, logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        return self.of(logits)


@dataclass(frozen=True)
class Pipeline:
    """The steps from left to right, then softmax."""

    steps: tuple[Step, ...]

    def __call__(self, logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        for step in self.steps:
            logits = step(logits, prompt, prefix)
        if float(logits.amax(-1).amin()) == BANNED:
            raise NothingLeft(f"the policy bans every token after {len(prompt)} + {len(prefix)} tokens")
        return logits.softmax(-1)

    def token(self, logits: Tensor, prompt: Tokens, prefix: Tokens) -> int | None:
        """What the row [V] has all its mass on, without the row, where the last step is `greedy`. None elsewhere, and
        where the row is none to draw from."""
        if self.steps[-1:] != (GREEDY,):
            return None
        for step in self.steps[:-1]:
            logits = step(logits, prompt, prefix)
        best = int(logits.argmax())  # the first of several
        return best if isfinite(logits[best]) else None

    @property
    def textless(self) -> bool:
        return all(isinstance(step, Textless) for step in self.steps)


def pipeline(*steps: Step) -> Policy:
    """The steps from left to right, then softmax. Raises NothingLeft where the steps have banned every token."""
    return Pipeline(steps)


def or_zeros(policy: Policy) -> Policy:
    """The same policy, with a row of zeros where it bans every token."""

    def lenient(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        try:
            return policy(logits, prompt, prefix)
        except NothingLeft:
            return torch.zeros_like(logits)

    return lenient


def rows(
    policy: Policy, logits: Tensor, prompt: Tokens, prefix: Tokens, tokens: Sequence[int], parents: Sequence[int]
) -> Tensor:
    """The target's rows that judge one lane's block, root first: float [n + 1, V] from logits [n + 1, V].

    Row 0 follows the prefix, row j + 1 follows node j (`tokens[j]`, child of `parents[j]`, -1 being the root).
    A row of zeros is one of which the policy leaves nothing: behind a token that ends the text, or that it bans itself.
    """
    if isinstance(policy, Pipeline) and policy.textless:
        with suppress(NothingLeft):
            return policy(logits, prompt, prefix)
    policy = or_zeros(policy)
    paths: list[Tokens] = [()]
    for token, parent in zip(tokens, parents, strict=True):
        paths.append((*paths[parent + 1], token))
    return torch.stack([policy(row, prompt, prefix + path) for row, path in zip(logits, paths, strict=True)])


def greedy() -> Step:
    """Ban all but the heaviest token, ties to the lowest id: the limit of temperature to 0."""
    return GREEDY


def _heaviest_alone(logits: Tensor) -> Tensor:
    best = logits.argmax(-1, keepdim=True)  # the first of several
    return torch.full_like(logits, BANNED).scatter_(-1, best, logits.gather(-1, best))


GREEDY = Textless(_heaviest_alone)


def temperature(value: float) -> Step:
    """Divide logits by the temperature. Zero is `greedy`.

    Where it, or a quotient, is beyond the range of the dtype, all are counted from the largest, which then stands at 0.
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"a temperature is positive (greedy() is the limit at 0) and finite, got {value}")

    def step(logits: Tensor) -> Tensor:
        divided, dtype = logits / value, torch.finfo(logits.dtype)
        within = (divided.isfinite() | (divided == logits)).all(-1, keepdim=True)
        if dtype.tiny <= value <= dtype.max and bool(within.all()):
            return divided
        from_largest = ((logits.double() - logits.amax(-1, keepdim=True).double()) / value).to(logits.dtype)
        return divided.where(within, from_largest) if dtype.tiny <= value <= dtype.max else from_largest

    return Textless(step)


def top_k(k: int) -> Step:
    """Keep the k heaviest tokens."""
    if k < 1:
        raise ValueError(f"top_k keeps at least one token, got {k}")
    return Textless(lambda logits: logits.where(_heaviest(logits, k), BANNED))


def top_p(p: float) -> Step:
    """Keep the smallest head whose share of the mass is at least p."""
    if not 0 < p <= 1:
        raise ValueError(f"top_p lies in (0, 1], got {p}")
    return Textless(lambda logits: logits.where(head(logits.double().softmax(-1), p), BANNED))


def head(weights: Tensor, p: float) -> Tensor:
    """bool [..., V]: the smallest head of each row whose share of the mass is at least p."""
    if p == 1:  # rounding would cut tokens that are lighter than the last bit of the sum
        return torch.ones_like(weights, dtype=torch.bool)
    order = _heaviest_first(weights)
    cdf = weights.gather(-1, order).cumsum(-1)
    before = torch.nn.functional.pad(cdf[..., :-1], (1, 0))
    return torch.zeros_like(weights, dtype=torch.bool).scatter(-1, order, before < p * cdf[..., -1:])


def min_p(share: float) -> Step:
    """Keep tokens whose probability is at least `share` of the heaviest."""
    if not 0 <= share <= 1:
        raise ValueError(f"min_p lies in [0, 1], got {share}")
    return Textless(
        lambda logits: logits.where((logits - logits.amax(-1, keepdim=True)).double().exp() >= share, BANNED)
    )


def repetition_penalty(penalty: float) -> Step:
    """Keskar et al. 2019, over prompt and prefix: a seen token's logit is divided if positive, multiplied if not."""
    if not penalty > 0:
        raise ValueError(f"a repetition penalty is positive, got {penalty}")

    def step(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        seen = _counts(logits, prompt + prefix) > 0
        return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)

    return step


def presence_penalty(penalty: float) -> Step:
    """Subtract once from tokens already generated. The prompt is not counted."""
    return lambda logits, prompt, prefix: logits - penalty * _counts(logits, prefix).clamp(max=1)


def frequency_penalty(penalty: float) -> Step:
    """As presence_penalty, once per occurrence."""
    return lambda logits, prompt, prefix: logits - penalty * _counts(logits, prefix)


def logit_bias(biases: Mapping[int, float]) -> Step:
    """Add to the logits of single tokens; -inf bans a token."""

    def step(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        bias = torch.zeros_like(logits)
        for token, value in biases.items():
            bias[token] = value
        return logits + bias

    return step


def bad_words(words: Sequence[Tokens]) -> Step:
    """Ban the token that would complete a forbidden sequence, the prompt counting as context."""
    if not all(words):
        raise ValueError("a forbidden sequence has at least one token")

    def step(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        seen = prompt + prefix
        banned = [word[-1] for word in words if seen[len(seen) - len(word) + 1 :] == word[:-1]]
        return _ban(logits, banned)

    return step


def grammar(transitions: Mapping[int, Mapping[int, int]], start: int = 0) -> Step:
    """A finite-state mask over the prefix: transitions[state][token] is the next state; what is absent is banned.

    A drafter may propose a banned token, and then rows after it are asked for. None of them can ever be used, because
    the banned token is refused; they are left as they are.
    """

    def step(logits: Tensor, prompt: Tokens, prefix: Tokens) -> Tensor:
        state = start
        for token in prefix:
            if token not in transitions[state]:
                return logits
            state = transitions[state][token]
        return _ban(logits, [x for x in range(logits.shape[-1]) if x not in transitions[state]])

    return step


def _heaviest_first(logits: Tensor) -> Tensor:
    return logits.sort(descending=True, stable=True).indices


def _heaviest(logits: Tensor, k: int) -> Tensor:
    """bool [..., V]: the k heaviest tokens, ties to the lowest id. Without sorting the vocabulary."""
    least = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    above, level = logits > least, logits == least
    return above | (level & (level.cumsum(-1) <= k - above.sum(-1, keepdim=True)))


def _ban(logits: Tensor, banned: Sequence[int]) -> Tensor:
    out = logits.clone()
    out[list(banned)] = BANNED
    return out


def _counts(logits: Tensor, tokens: Tokens) -> Tensor:
    seen = torch.tensor(tokens, dtype=torch.int64, device=logits.device)
    return torch.bincount(seen, minlength=logits.shape[-1]).to(logits.dtype)
