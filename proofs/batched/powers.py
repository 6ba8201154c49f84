"""Functions of a number or of a row of which this alone is known: the same comes out for the same.

A power of two that scales a row is positive besides.
"""

from collections.abc import Sequence
from typing import Any

import z3

from proofs.batched.terms import ANY, OTHER, Entry, Paths, real, unknowns


class Magnitude:
    """The power of two of each number: known only as what brings its mass near 1."""

    def __init__(self, numbers: Any) -> None:
        self.exponent = Exponent(numbers)


class Exponent:
    """What `frexp` gives; minus it, as a power of two, is a positive number that depends on the number alone."""

    def __init__(self, numbers: Any, sign: int = 1) -> None:
        self.numbers, self.sign = numbers, sign

    def double(self) -> "Exponent":
        return self

    def __neg__(self) -> "Exponent":
        return Exponent(self.numbers, -self.sign)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ != "exp2":
            raise NotImplementedError(f"torch.{func.__name__} has no meaning on an exponent")
        (exponent,) = args
        return exponent.numbers.each(lambda e: power(e, exponent.sign, exponent.numbers.world))


POWERS: dict[tuple[str, int], Any] = {}


def power(number: Entry, sign: int, world: Paths) -> Entry:
    """Any positive number, the same for the same number."""
    if number is ANY:
        return ANY
    key = (z3.simplify(real(number)).sexpr(), sign)
    scale = POWERS.setdefault(key, z3.Real(f"scale{len(POWERS)}"))
    if key not in world.scaled:
        world.scaled.add(key)
        world.assumed.append(scale > 0)
    return scale


FUNCTIONS: dict[tuple[str, str], Any] = {}


def function(word: str, number: Entry) -> Entry:
    """What the logarithm or the exponential gives: any number, the same for the same one.

    The exponential of a number that is no row's would be one above those that a text may have.
    """
    if number is ANY:
        return ANY
    argument = z3.simplify(real(number))
    if word == "exp" and z3.is_rational_value(argument):
        raise LookupError("the exponential of a number that is no row's")
    of_others = any(u.decl().name().endswith(OTHER) for u in unknowns(argument))
    name = f"{word}{len(FUNCTIONS)}{OTHER if of_others else ''}"
    return FUNCTIONS.setdefault((word, argument.sexpr()), z3.Real(name))


HEADS: dict[tuple[str, ...], int] = {}


def head_of(row: Sequence[Entry], share: Entry, world: Paths) -> list[Entry]:
    """Which tokens belong to the head with this share of a row's mass: any of them, the same for the same row."""
    if any(entry is ANY for entry in row) or share is ANY:
        return [world.unknown() for _ in row]
    key = tuple(z3.simplify(real(entry)).sexpr() for entry in (*row, share))
    head = HEADS.setdefault(key, len(HEADS))
    return [*(z3.Bool(f"head{head}[{c}]") for c in range(len(row) - 1)), z3.Bool(f"head{head}{OTHER}")]
