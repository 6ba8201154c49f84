"""Forward passes remembered by everything that goes into them.

An enumeration asks for the same pass many times. A pass may be remembered only under its *whole* input, that is tokens,
positions, masks and every byte of the cache: under the prefix alone, a stale row or a wrong position would be answered
with the right result, and rollback would not be tested at all.
"""

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from torch import Tensor

Out = TypeVar("Out")


def remembered(forward: Callable[..., Out]) -> Callable[..., Out]:
    """The same function, each distinct input computed once. It must not change its inputs."""
    known: dict[Hashable, Out] = {}

    def lookup(*inputs: object) -> Out:
        key = content(inputs)
        if key not in known:
            known[key] = forward(*inputs)
        return known[key]

    return lookup


class Remembered:
    """A drafter's network whose passes, which are functions of their arguments, are remembered; all else is its own."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.fused, self.rows, self.logits = (remembered(f) for f in (network.fused, network.rows, network.logits))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


def content(value: object) -> Hashable:
    """A value down to its bits, as something hashable."""
    if isinstance(value, Tensor):
        return value.dtype, tuple(value.shape), value.detach().cpu().contiguous().numpy().tobytes()
    if isinstance(value, Mapping):
        return tuple((key, content(value[key])) for key in sorted(value))
    if isinstance(value, tuple):
        return tuple(content(part) for part in value)
    if dataclasses.is_dataclass(value):
        return tuple(content(getattr(value, field.name)) for field in dataclasses.fields(value))
    assert isinstance(value, Hashable)
    return value
