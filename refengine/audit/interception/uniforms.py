"""Uniforms whose value is decided only as far as a comparison needs it.

`torch.rand` returns k / 2^bits with k uniform on 0 … 2^bits - 1 (24 bits in float32, 53 in float64). A `Grid` is one
such uniform before anybody has looked at all of it: the interval of k that is still possible. A tensor computed from
uniforms is `Derived`: it says which uniform each element depends on, and how to compute it again from other values of
them. When the subject compares such a tensor, `split` finds by bisection the k at which the answer changes. Each answer
then carries the exact number of grid points that lead to it: the coin that the program really throws, with `<` and `<=`
told apart, whatever algebra stands in front of the comparison.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

# Significand digits, which is how many random bits torch's CPU generator puts into one uniform of each dtype.
BITS = {torch.float32: 24, torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}
NOBODY = -1  # the owner of an element that depends on no uniform
Piece: TypeAlias = tuple[int, int, int]  # first k, one past the last k, the value on them


class Unmodelled(RuntimeError):
    """The program used randomness in a way that is not followed exactly; audit it by sampling."""


@dataclass(frozen=True)
class Grid:
    """One uniform k / 2^bits, known to satisfy lo <= k < hi."""

    bits: int
    lo: int
    hi: int

    @property
    def untouched(self) -> bool:
        return self.lo == 0 and self.hi == 1 << self.bits


@dataclass(frozen=True)
class Derived:
    """What is known about a tensor that was computed from uniforms.

    owner   int64, the tensor's shape: index of the uniform that an element depends on, NOBODY for a constant
    replay  recomputes the tensor from a float64 table of all uniforms (the last entry of the table belongs to NOBODY)
    """

    owner: Tensor
    replay: Callable[[Tensor], Tensor]


def source(owner: Tensor, dtype: torch.dtype, transform: Callable[[Tensor], Tensor] | None = None) -> Derived:
    """Fresh uniforms (owner[i]: the index of element i), or `transform` of them, computed in float64 and rounded."""
    return Derived(owner, lambda table: (table[owner] if transform is None else transform(table[owner])).to(dtype))


def merge_owners(owners: list[Tensor]) -> Tensor | None:
    """Owner of each element of an elementwise result; None where an element would depend on a uniform twice or on two.

    Twice is refused too: u * (1 - u) is not monotone, and bisection would be wrong without noticing it.
    """
    merged, *rest = owners
    for other in rest:
        if bool(((merged != NOBODY) & (other != NOBODY)).any()):
            return None
        merged = torch.where(other == NOBODY, merged, other)
    return merged


def pieces(value: Callable[[int], int], lo: int, hi: int) -> list[Piece]:
    """Cut [lo, hi) where a monotone integer function changes, in order of k."""
    out: list[Piece] = []
    last = value(hi - 1)
    start, here = lo, value(lo)
    while here != last:
        same, changed = start, hi - 1  # value(same) == here != value(changed)
        while changed - same > 1:
            middle = (same + changed) // 2
            if value(middle) == here:
                same = middle
            else:
                changed = middle
        out.append((start, changed, here))
        start, here = changed, value(changed)
    return [*out, (start, hi, last)]


def split(derived: Derived, grids: list[Grid], element: int) -> list[Piece]:
    """Cut what is left of one element's uniform where the element changes its value (elements in flat order)."""
    owner = int(derived.owner.reshape(-1)[element])
    grid = grids[owner]
    table = torch.zeros(len(grids) + 1, dtype=torch.float64)

    def value(k: int) -> int:
        table[owner] = k / (1 << grid.bits)  # exact: k has at most 53 bits
        return int(derived.replay(table).reshape(-1)[element])

    return pieces(value, grid.lo, grid.hi)
