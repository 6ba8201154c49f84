"""torch's functions on tensors of terms, those that are no methods. A function that is not here is refused."""

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from proofs.batched.powers import Magnitude, function
from proofs.batched.terms import Entry, chosen, computed


def where(condition: Any, a: Any, b: Any) -> Any:
    terms = first_of(condition, a, b)
    dtype = promoted(a, b)
    condition, a, b = map(terms.lift, (condition, a, b))
    return condition.each(chosen(terms.world, whole=not dtype.is_floating_point), a, b, dtype=dtype)


def stack(parts: Sequence[Any], dim: int = 0) -> Any:
    terms = first_of(*parts)
    lifted = [terms.lift(part) for part in parts]
    for part in lifted:
        part.bounded()
    dtype = torch.float64 if torch.float64 in {part.dtype for part in lifted} else lifted[0].dtype
    return type(terms)(np.stack([part.array for part in lifted], dim), dtype, terms.world)


def pad(terms: Any, widths: tuple[int, int], mode: str = "constant", value: Entry = 0) -> Any:
    terms.bounded()
    before, after = widths
    value = bool(value) if terms.dtype == torch.bool else value or 0
    length = terms.shape[-1]
    inside = lambda at: 0 <= at[-1] - before < length  # noqa: E731
    wider = (*terms.shape[:-1], before + length + after)
    return terms.filled(wider, lambda at: terms.array[(*at[:-1], at[-1] - before)] if inside(at) else value)


def full_like(value: Entry) -> Callable[..., Any]:
    def made(like: Any, fill: Entry = value, dtype: torch.dtype | None = None, **_: Any) -> Any:
        kind = dtype or like.dtype
        fill = bool(fill) if kind == torch.bool else fill
        return like.filled(like.array.shape, lambda at: fill, kind, like.rows)

    return made


def xlogy(a: Any, b: Any) -> Any:
    """a log b, and 0 where a is 0."""
    times = computed(operator.mul)
    a.unrounded(a.lift(b).dtype)
    return a.each(lambda x, y: times(x, function("log", y)), b, dtype=torch.float64)


def exp(numbers: Any) -> Any:
    numbers.unrounded()
    return numbers.each(partial(function, "exp"))


WORDS: dict[str, Callable[..., Any]] = {
    "where": where,
    "pad": pad,
    "stack": stack,
    "zeros_like": full_like(0),
    "ones_like": full_like(1),
    "full_like": full_like(0),
    "frexp": Magnitude,
    "exp": exp,
    "special_xlogy": xlogy,
}


def first_of(*values: Any) -> Any:
    """The first that is a tensor of terms."""
    return next(value for value in values if is_terms(value))


def is_terms(value: Any) -> bool:
    return hasattr(value, "world")


def promoted(a: Any, b: Any) -> torch.dtype:
    """What torch makes of the two: a number that is no tensor, or has no axis, does not widen a tensor of its sort."""

    def like(value: Any) -> Any:
        if is_terms(value):
            return empty(value.array.ndim, value.dtype)
        return value if isinstance(value, torch.Tensor | bool | int) else 0.0

    return torch.result_type(like(a), like(b))


@cache
def empty(axes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty((1,) * axes, dtype=dtype)
