"""Exact laws: the distribution of what a program returns, and the distance between two of them."""

from collections.abc import Callable, Container, Hashable, Mapping
from fractions import Fraction
from typing import TypeAlias, TypeVar

from refengine.exact.block import Drafter, Rule, Target, target_rows
from refengine.exact.chance import Chance, Decision, Weight, runs

T = TypeVar("T", bound=Hashable)
Law: TypeAlias = dict[T, Weight]
Tokens: TypeAlias = tuple[int, ...]


def law(program: Callable[[Chance], T]) -> Law[T]:
    """The exact law of `program(chance)`: every result with its probability."""
    out: Law[T] = {}
    for result, weight, _ in runs(program):
        out[result] = out.get(result, 0) + weight
    return out


def witness(program: Callable[[Chance], T], result: T) -> list[Decision]:
    """The decisions of one run that returns `result`; raises LookupError where there is none."""
    for found, _, trace in runs(program):
        if found == result:
            return trace
    raise LookupError(f"no run returns {result}")


def tv(a: Mapping[T, Weight], b: Mapping[T, Weight]) -> Weight:
    """Total variation: half the sum of |a - b| over every outcome of either."""
    return sum(abs(a.get(x, 0) - b.get(x, 0)) for x in a.keys() | b.keys()) / 2


def target_law(target: Target, prefix: Tokens, length: int, stop: Container[int] = ()) -> Law[Tokens]:
    """The target's own joint law of the next `length` tokens, fewer where one of them is a stop token."""
    return completed({(): Fraction(1)}, target, prefix, length, stop)


def completed(
    emitted: Law[Tokens], target: Target, prefix: Tokens, length: int, stop: Container[int] = ()
) -> Law[Tokens]:
    """The law of `length` tokens: longer outputs are cut, shorter ones without a stop token topped up by target draws.

    A round is lossless iff its completed law is the target's law at every length (proofs/rocq/Round.v: lossless).
    """
    out: Law[Tokens] = {}
    for tokens, mass in emitted.items():
        out[tokens[:length]] = out.get(tokens[:length], 0) + mass
    for size in range(length):
        for tokens in [tokens for tokens in out if len(tokens) == size and not (tokens and tokens[-1] in stop)]:
            mass = out.pop(tokens)
            for x, px in enumerate(target(prefix + tokens)):
                if px > 0:
                    out[(*tokens, x)] = out.get((*tokens, x), 0) + mass * px
    return out


def round_law(target: Target, drafter: Drafter, rule: Rule, prefix: Tokens) -> Law[Tokens]:
    """The exact law of the tokens that one round emits, drafting included."""

    def one_round(chance: Chance) -> Tokens:
        block = drafter(prefix, chance)
        return rule(target_rows(target, prefix, block), block, chance).tokens

    return law(one_round)


def losslessness(target: Target, drafter: Drafter, rule: Rule, prefix: Tokens, length: int) -> Weight:
    """TV between the completed law of one round and the target's joint law of `length` tokens; 0 means lossless."""
    emitted = round_law(target, drafter, rule, prefix)
    return tv(completed(emitted, target, prefix, length), target_law(target, prefix, length))
