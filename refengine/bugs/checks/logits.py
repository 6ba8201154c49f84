"""Checks of the batched policies: the weights that a person computes, as probabilities, and the support exactly."""

import math
from collections.abc import Iterator
from typing import Any

import torch

from refengine.bugs.checks.chances import Case, first, refusal, refused
from refengine.bugs.checks.violation import Violation
from refengine.engine import policy
from refengine.engine.policy import pipeline

W = (4.0, 1.0, 2.0, 1.0)  # a tie between tokens 1 and 3
MIXED = (1.0, -0.5, 0.0, 3.0)  # logits of both signs, and zero
LN2 = math.log(2)


def applied(step: Any, want: Any, prompt: Any = (), prefix: Any = (), logits: Any = None) -> Case:
    """The case that the row after `step` is in proportion to `want`: support exactly, numbers within 2^-45.

    exp, log and one division in float64 err by a few units of 2^-53; 2^-45 leaves eight bits.
    """
    given = torch.tensor([math.log(w) for w in W] if logits is None else logits, dtype=torch.float64)
    have = pipeline(step)(given, prompt, prefix).tolist()
    close = all(abs(h - w / sum(want)) < 2.0**-45 and (h > 0) == (w > 0) for h, w in zip(have, want, strict=True))
    shown = [round(h, 9) for h in have]
    return f"row after {prompt} {prefix}", shown if not close else "close", "close"


def weights() -> Violation | None:
    """Every step gives the row that a person computes by hand, at its ties and edges too."""
    return first(_weights())


def _weights() -> Iterator[Case]:
    want: Any
    prefix: Any
    yield applied(policy.greedy(), (1, 0, 0, 0))
    yield applied(policy.greedy(), (0, 1, 0), logits=(1, 2, 2))
    many = policy.greedy()(torch.arange(64.0) % 3, (), ())  # an unstable order shows among many equal logits
    yield "ties to the lowest id", many.isfinite().nonzero().tolist(), [[2]]
    several = policy.top_k(30)(torch.arange(64.0) % 3, (), ())
    ids = [[x] for x in range(64) if x % 3 == 2 or (x % 3 == 1 and x < 27)]
    yield "several ties to the lowest ids", several.isfinite().nonzero().tolist(), ids
    for value, want in ((1.0, W), (0.5, (16, 1, 4, 1)), (2.0, (2, 1, 2**0.5, 1))):
        yield applied(policy.temperature(value), want)
    for k, want in ((1, (4, 0, 0, 0)), (3, (4, 1, 2, 0)), (4, W), (9, W)):
        yield applied(policy.top_k(k), want)
    for p, want in (
        (0.49, (4, 0, 0, 0)),
        (0.51, (4, 0, 2, 0)),
        (0.74, (4, 0, 2, 0)),
        (0.76, (4, 1, 2, 0)),
        (0.9, W),
        (1.0, W),
    ):
        yield applied(policy.top_p(p), want)
    # Rows of 1/4 have exact cumulative sums: a threshold that is met exactly ends the head.
    yield applied(policy.top_p(0.5), (1, 1, 0, 0), logits=(0.0,) * 4)
    # The first of these float32 logits has 1/2 - 1.4e-8; in float32 that is 1/2, and the head would end with it.
    narrow = policy.top_p(0.5)(torch.tensor([0.0, -0.6931471228599548, -0.6931471228599548]), (), ())
    yield "top-p of float32 logits", narrow.isfinite().tolist(), [True, True, False]
    yield "head of weights with any sum", policy.head(torch.tensor([2.0, 1.0, 1.0]), 0.6).tolist(), [True, True, False]
    yield applied(policy.top_p(1.0), (1, 1e-20), logits=(0.0, math.log(1e-20)))
    for share, want in ((0.0, W), (0.3, (4, 0, 2, 0)), (0.49, (4, 0, 2, 0)), (0.51, (4, 0, 0, 0)), (1.0, (4, 0, 0, 0))):
        yield applied(policy.min_p(share), want)
    yield applied(policy.min_p(1.0), (1, 1, 0), logits=(2.0, 2.0, 1.0))
    yield applied(policy.logit_bias({0: float("-inf"), 2: LN2}), (0, 1, 4, 1))
    for prompt, prefix, want in (((), (), MIXED), ((0,), (1,), (0.5, -1, 0, 3)), ((3, 3), (2,), (1, -0.5, 0, 1.5))):
        odds = [math.exp(x) for x in want]
        yield applied(policy.repetition_penalty(2.0), odds, prompt, prefix, MIXED)
    for prefix, presence, frequency in (
        ((), W, W),
        ((0,), (2, 1, 2, 1), (2, 1, 2, 1)),
        ((0, 2, 0), (2, 1, 1, 1), (1, 1, 1, 1)),
    ):
        yield applied(policy.presence_penalty(LN2), presence, (1, 3), prefix)
        yield applied(policy.frequency_penalty(LN2), frequency, (1, 3), prefix)
    for prompt, prefix, want in (
        ((), (), (4, 0, 2, 1)),
        ((2,), (), (4, 0, 2, 0)),
        ((), (0, 2), (4, 0, 2, 0)),
        ((2, 2), (0,), (0, 0, 2, 1)),
    ):
        yield applied(policy.bad_words([(2, 3), (1,), (2, 0, 0)]), want, prompt, prefix)
    grammar = policy.grammar({0: {0: 0, 1: 1}, 1: {2: 2}, 2: {0: 0, 3: 1}})
    for prefix, want in (
        ((), (4, 1, 0, 0)),
        ((0,), (4, 1, 0, 0)),
        ((1,), (0, 0, 2, 0)),
        ((0, 1, 2), (4, 0, 0, 1)),
        ((3,), W),
    ):
        yield applied(grammar, want, (2, 2), prefix)
    yield applied(policy.grammar({3: {1: 3}}, start=3), (0, 1, 0, 0), (), (1, 1))
    yield from _long()
    both = pipeline(policy.temperature(0.5), policy.top_k(2), policy.presence_penalty(LN2))
    row = both(torch.tensor([math.log(w) for w in W], dtype=torch.float64), (), (0,))
    yield (
        "steps from left to right",
        [round(x, 12) for x in row.tolist()],
        [round(8 / 12, 12), 0.0, round(4 / 12, 12), 0.0],
    )
    yield "row dtype", pipeline()(torch.zeros(2), (), ()).dtype, torch.float32


def _long() -> Iterator[Case]:
    """What was seen 200 tokens ago, a ninth occurrence, a ninth forbidden word of nine tokens, a head of 60."""
    far: Any = (1, *(0,) * 200)
    odds = [math.exp(x) for x in (0.5, -1, 0, 3)]
    yield applied(policy.repetition_penalty(2.0), odds, (), far, MIXED)
    yield applied(policy.repetition_penalty(2.0), odds, far, (), MIXED)
    yield applied(policy.presence_penalty(LN2), (2, 0.5, 2, 1), (), far)
    yield applied(policy.frequency_penalty(LN2), (4 / 2**9, 1, 2, 1), (), (0,) * 9)
    words: Any = [(3, 3, x) for x in range(8)] + [(0, 1, 2, 3, 0, 1, 2, 3, 2)]
    yield applied(policy.bad_words(words), (4, 1, 0, 1), (0, 1, 2), (3, 0, 1, 2, 3))
    grammar = policy.grammar({state: {0: state + 1} for state in range(20)} | {20: {2: 20}})
    yield applied(grammar, (0, 0, 2, 0), (), (0,) * 20)
    most = policy.top_k(60)(torch.arange(64.0), (), ())
    yield "top-k 60 of 64", most.isfinite().tolist(), [False] * 4 + [True] * 60


def rows() -> Violation | None:
    """The rows that judge a block each see the prompt, the prefix and the drafted tokens on their own path."""
    return first(_rows())


def _rows() -> Iterator[Case]:
    seen: list[Any] = []

    def listening(logits: Any, prompt: Any, prefix: Any) -> Any:
        seen.append((int(logits[0]), prompt, prefix))
        return logits

    have = policy.rows(listening, torch.arange(5.0)[:, None], (9,), (8,), (4, 5, 6, 7), (-1, 0, -1, 1))
    yield "rows", have.tolist(), [[0.0], [1.0], [2.0], [3.0], [4.0]]
    paths = [(8,), (8, 4), (8, 4, 5), (8, 6), (8, 4, 5, 7)]
    yield "what the policy sees", seen, [(i, (9,), path) for i, path in enumerate(paths)]


def refusals() -> Violation | None:
    """Parameters outside their range are refused by name; so is a policy that bans everything."""
    return first(_refusals())


def _refusals() -> Iterator[Case]:
    for value in (0.0, -1.0, float("nan")):
        yield refused(lambda v=value: policy.temperature(v), "a temperature is positive")  # type: ignore[misc]
    for k in (0, -1):
        yield refused(lambda k=k: policy.top_k(k), "keeps at least one token")  # type: ignore[misc]
    for p in (0.0, 1.1, -0.1):
        yield refused(lambda p=p: policy.top_p(p), "top_p lies in (0, 1]")  # type: ignore[misc]
    for share in (-0.1, 1.1):
        yield refused(lambda s=share: policy.min_p(s), "min_p lies in [0, 1]")  # type: ignore[misc]
    for penalty in (0.0, -1.0):
        yield refused(lambda x=penalty: policy.repetition_penalty(x), "a repetition penalty is positive")  # type: ignore[misc]
    yield "a repetition penalty below 1", refusal(lambda: policy.repetition_penalty(0.5)), ""
    yield refused(lambda: policy.bad_words([(1,), ()]), "at least one token")
    none: Any = policy.pipeline()
    for size, tokens, parents in ((2, (4, 5), (-1, 0)), (3, (4,), (-1, 0)), (2, (4, 5), (-1,))):
        given = (none, torch.zeros(size, 2), (), (), tokens, parents)
        yield refused(lambda g=given: policy.rows(*g), "zip()")  # type: ignore[misc]
    everything = pipeline(policy.logit_bias({0: float("-inf"), 1: float("-inf")}))
    yield refused(lambda: everything(torch.zeros(2), (1,), (0, 1)), "bans every token after 1 + 2 tokens")
    yield "one token left", refusal(lambda: everything(torch.zeros(3), (), ())), ""
