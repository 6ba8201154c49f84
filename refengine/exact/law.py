"""Exact laws: the distribution of what a program returns, and the distance between two of them."""

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import TypeAlias, TypeVar

from refengine.exact.block import Block, Drafter, Rule, Target
from refengine.exact.chance import Chance, Decision, Weight, runs
from refengine.exact.row import Row

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


def target_law(target: Target, prefix: Tokens, length: int) -> Law[Tokens]:
    """The target's own joint law of the next `length` tokens."""
    out: Law[Tokens] = {(): Fraction(1)}
    for _ in range(length):
        out = {
            (*tokens, x): mass * px
            for tokens, mass in out.items()
            for x, px in enumerate(target(prefix + tokens))
            if px > 0
        }
    return out


def completed(emitted: Law[Tokens], target: Target, prefix: Tokens, length: int) -> Law[Tokens]:
    """The law of exactly `length` tokens: longer outputs are cut, shorter ones topped up with target draws.

    A round is lossless iff its completed law is the target's law at every length (proofs/rocq/Round.v: lossless).
    """
    out: Law[Tokens] = {}
    for tokens, mass in emitted.items():
        cut = tokens[:length]
        for tail, p in target_law(target, prefix + cut, length - len(cut)).items():
            out[cut + tail] = out.get(cut + tail, 0) + mass * p
    return out


def target_rows(target: Target, prefix: Tokens, block: Block) -> list[Row]:
    """The target's rows that judge a block, root first."""
    return [target(prefix + block.path(node)) for node in range(-1, len(block.tokens))]


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
