"""The modes that a rule can be run in, read off its own signature: what stands behind p, block and the chance.

A switch is on or off. Any other option is any real number, the same in both texts; what it is where nobody says must be
the same too. So a rule that gets an option is asked about under all its values without a list being edited.
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from itertools import product
from typing import Any

import z3

GIVEN = 3  # parameters of a rule that are no options: p, block, chance or coins

Mode = Mapping[str, Any]  # an option's name -> True, False, or an unknown real


def options(rule: Callable[..., Any]) -> dict[str, Any]:
    """Its options and what each is where nobody says: a bool, a float, or that it has to be said."""
    behind = [*signature(rule).parameters.values()][GIVEN:]
    return {o.name: default(o.default) for o in behind}


def default(value: Any) -> Any:
    return value if isinstance(value, bool) or value is Parameter.empty else float(value)


def modes(rule: Callable[..., Any]) -> Iterator[Mode]:
    """Every combination of its switches, at all values of its numbers; what is asked less of (`lanes.shapes`) first."""
    sides = {
        name: (True, False) if isinstance(value, bool) else (z3.Real(name),) for name, value in options(rule).items()
    }
    for values in product(*sides.values()):
        yield dict(zip(sides, values, strict=True))


def arguments(mode: Mode, number: Callable[[Any], Any]) -> dict[str, Any]:
    """What a text is given for its options; `number` makes of an unknown real what its arithmetic takes."""
    return {name: value if isinstance(value, bool) else number(value) for name, value in mode.items()}


def told(name: str, mode: Mode) -> str:
    """nucleus(any top_p, fast=True)"""
    said = [f"{option}={value}" if isinstance(value, bool) else f"any {option}" for option, value in mode.items()]
    return f"{name}({', '.join(said)})" if said else name
