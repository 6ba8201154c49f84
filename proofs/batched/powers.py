"""Powers of two that scale a row: any positive number, the same for the same mass."""

from typing import Any

import z3

from proofs.batched.terms import ANY, Entry, Paths, real


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
    if all(not (scale > 0).eq(a) for a in world.assumed):
        world.assumed.append(scale > 0)
    return scale
