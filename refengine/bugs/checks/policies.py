"""Checks of exact policies: hand-computed weights, support, and refusals."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from refengine.bugs.checks.chances import Case, first, refused
from refengine.bugs.checks.violation import Violation
from refengine.exact import policy
from refengine.exact.policy import pipeline

W = tuple(Fraction(w) for w in (4, 1, 2, 1))  # a tie between tokens 1 and 3
HALF = Fraction(1, 2)


def apply(step: Any, prompt: tuple[int, ...] = (), prefix: tuple[int, ...] = (), weights: Any = W) -> list[Fraction]:
    return list(step(weights, prompt, prefix))


def weights() -> Violation | None:
    """Every policy gives the weights that a person computes by hand, at its ties and edges too."""
    return first(_weights())


def _weights() -> Iterator[Case]:
    prefix: Any
    yield from _filters()
    yield from _penalties()
    for prompt, prefix, want in (
        ((), (), [4, 0, 2, 0]),
        ((1,), (), [4, 0, 0, 0]),
        ((), (0, 1), [4, 0, 0, 0]),
        ((1, 2), (), [4, 0, 2, 0]),
        ((), (1, 0), [4, 0, 2, 0]),
        ((2,), (1,), [0, 0, 0, 0]),
    ):
        banned = policy.bad_words([(3,), (1, 2), (1,), (2, 1, 0)])
        yield f"bad words after {prompt} {prefix}", apply(banned, prompt, prefix), want
    grammar = policy.grammar({0: {0: 0, 1: 1}, 1: {2: 2}, 2: {0: 0, 3: 1}})
    for prefix, want in (((), [4, 1, 0, 0]), ((0,), [4, 1, 0, 0]), ((1,), [0, 0, 2, 0]), ((0, 1, 2), [4, 0, 0, 1])):
        yield f"grammar after {prefix}", apply(grammar, (2, 2), prefix), want
    yield "grammar started later", apply(policy.grammar({3: {1: 3}}, start=3), (), (1, 1)), [0, 1, 0, 0]
    yield from _long()
    both = pipeline(policy.temperature(2), policy.top_k(2))
    yield "temperature, then top-k", both(W, (), ()), (Fraction(4, 5), 0, Fraction(1, 5), 0)
    other = pipeline(policy.min_p(HALF), policy.presence_penalty(HALF))
    yield "min-p, then presence", other(W, (), (0,)), (HALF, 0, HALF, 0)


def _long() -> Iterator[Case]:
    """What was seen 200 tokens ago, a ninth occurrence, a ninth forbidden word of nine tokens, a late state."""
    far = (1, *(0,) * 200)
    squares = (Fraction(4), Fraction(9), Fraction(1), Fraction(1))
    for prompt, prefix in (((), far), (far, ())):
        yield "repetition long ago", apply(policy.repetition_penalty(2), prompt, prefix, squares), [2, 3, 1, 1]
    yield "presence long ago", apply(policy.presence_penalty(HALF), (), far), [2, HALF, 2, 1]
    yield "frequency of nine", apply(policy.frequency_penalty(HALF), (), (0,) * 9), [4 * HALF**9, 1, 2, 1]
    words = [(3, 3, x) for x in range(8)] + [(0, 1, 2, 3, 0, 1, 2, 3, 2)]
    yield "a ninth bad word", apply(policy.bad_words(words), (0, 1, 2), (3, 0, 1, 2, 3)), [4, 1, 0, 1]
    grammar = policy.grammar({state: {0: state + 1} for state in range(20)} | {20: {2: 20}})
    yield "a late state of a grammar", apply(grammar, (), (0,) * 20), [0, 0, 2, 0]
    most = apply(policy.top_k(60), weights=tuple(range(1, 65)))
    yield "top-k 60 of 64", most, [0] * 4 + list(range(5, 65))


def _filters() -> Iterator[Case]:
    yield "greedy", apply(policy.greedy()), [1, 0, 0, 0]
    yield "greedy at a tie", apply(policy.greedy(), weights=(1, 2, 2)), [0, 1, 0]
    yield "temperature 1", apply(policy.temperature(1)), [4, 1, 2, 1]
    yield "temperature 1/3", apply(policy.temperature(3)), [64, 1, 8, 1]
    for k, want in ((1, [4, 0, 0, 0]), (3, [4, 1, 2, 0]), (4, [4, 1, 2, 1]), (9, [4, 1, 2, 1])):
        yield f"top-k {k}", apply(policy.top_k(k)), want
    # The heads of W / 8 weigh 1/2, 3/4, 7/8, 1: a threshold that is met exactly ends the head.
    heads = (("1/2", 1), ("51/100", 2), ("3/4", 2), ("7/8", 3), ("9/10", 4), ("1", 4))
    for p, size in heads:
        head = [w if x in (0, 2, 1, 3)[:size] else Fraction(0) for x, w in enumerate(W)]
        yield f"top-p {p}", apply(policy.top_p(Fraction(p))), head
    for share, want in (("0", [4, 1, 2, 1]), ("1/4", [4, 1, 2, 1]), ("1/3", [4, 0, 2, 0]), ("1", [4, 0, 0, 0])):
        yield f"min-p {share}", apply(policy.min_p(Fraction(share))), want
    yield "logit bias", apply(policy.logit_bias({0: Fraction(0), 2: Fraction(3)})), [0, 1, 6, 1]


def _penalties() -> Iterator[Case]:
    prefix: Any
    mixed = (Fraction(4), Fraction(1, 9), Fraction(1), Fraction(9))  # logits of both signs, and zero
    # At penalty 2 a positive logit is halved (a square root) and a negative one doubled (a square).
    for prompt, prefix, want in (
        ((), (), [4, Fraction(1, 9), 1, 9]),
        ((0,), (1,), [2, Fraction(1, 81), 1, 9]),
        ((3, 3), (2,), [4, Fraction(1, 9), 1, 3]),
    ):
        yield f"repetition after {prompt} {prefix}", apply(policy.repetition_penalty(2), prompt, prefix, mixed), want
    yield "repetition penalty 1", apply(policy.repetition_penalty(1), (0, 1), (2, 3), mixed), list(mixed)
    cubes = (Fraction(8, 27), Fraction(27, 8))
    yield (
        "repetition penalty 3",
        apply(policy.repetition_penalty(3), (1,), (), cubes),
        [Fraction(8, 27), Fraction(3, 2)],
    )
    for root in (12743827415128813, 15026737201994581):  # a float root of its square is one too low, one too high
        large = apply(policy.repetition_penalty(2), (0,), (), (Fraction(root**2), Fraction(1)))
        yield "repetition of a large square", large, [root, 1]
    for prefix, presence, frequency in (
        ((), [4, 1, 2, 1], [4, 1, 2, 1]),
        ((0,), [2, 1, 2, 1], [2, 1, 2, 1]),
        ((0, 2, 0), [2, 1, 1, 1], [1, 1, 1, 1]),
    ):
        yield f"presence after {prefix}", apply(policy.presence_penalty(HALF), (1, 3), prefix), presence
        yield f"frequency after {prefix}", apply(policy.frequency_penalty(HALF), (1, 3), prefix), frequency


def refusals() -> Violation | None:
    """A parameter outside its range is refused by name; a policy that bans everything is refused."""
    return first(_refusals())


def _refusals() -> Iterator[Case]:
    yield refused(lambda: policy.temperature(0), "1/0 is none of them")
    yield refused(lambda: policy.top_k(0), "at least one token, got 0")
    for p in (Fraction(0), Fraction(11, 10), Fraction(-1, 10)):
        yield refused(lambda p=p: policy.top_p(p), "top_p lies in (0, 1]")  # type: ignore[misc]
    for share in (Fraction(-1, 10), Fraction(11, 10)):
        yield refused(lambda share=share: policy.min_p(share), "min_p lies in [0, 1]")  # type: ignore[misc]
    yield refused(
        lambda: apply(policy.repetition_penalty(2), (2,), (), W), "token 2: the repetition penalty has no exact"
    )
    yield refused(lambda: policy.bad_words([(1,), ()]), "at least one token")
    yield refused(lambda: pipeline(policy.bad_words([(0,), (1,), (2,), (3,)]))(W, (), ()), "no token has mass")
