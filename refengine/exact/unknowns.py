"""Tokens that nobody has looked at yet, and numbers and rows that depend on them.

A walk of `merged.py` hands a program `Token`s where `chance.choose` would return an int. A token is an axis, not a
value: a row after it is a `Row` with one case for every value of the axis, an entry of that row is a `Value`, and
arithmetic on values is done case by case. Whatever cannot be done case by case (a comparison in an `if`, an int where
Python wants one, a hash) asks the walk, which splits there and goes on in each part. So a program that looks at no
token but through its rows is run once for all of them, and one that looks at every token is walked path by path.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, Protocol, TypeAlias

from refengine.exact import row as row_arithmetic
from refengine.exact.chance import Weight

Key: TypeAlias = tuple[int, ...]  # one value for each axis
Cells: TypeAlias = dict[Key, Any]


class Walk(Protocol):
    """What asks a walk to split: one of the outcomes in `cases`, on which the walk goes on."""

    def turn(self, cases: "Value") -> Any: ...


@dataclass(frozen=True, eq=False)
class Value:
    """A number (or a bool, or a row) for every case of some tokens: `cells` by the values of `axes`.

    A case that is missing cannot happen, or had no answer: the mass that reaches it is found missing from the law.
    """

    walk: Walk
    axes: tuple[int, ...]
    cells: Cells

    def __add__(self, other: Any) -> Any:
        return pointwise(lambda a, b: a + b, self, other)

    def __radd__(self, other: Any) -> Any:
        return pointwise(lambda a, b: b + a, self, other)

    def __sub__(self, other: Any) -> Any:
        return pointwise(lambda a, b: a - b, self, other)

    def __rsub__(self, other: Any) -> Any:
        return pointwise(lambda a, b: b - a, self, other)

    def __mul__(self, other: Any) -> Any:
        return pointwise(lambda a, b: a * b, self, other)

    def __rmul__(self, other: Any) -> Any:
        return pointwise(lambda a, b: b * a, self, other)

    def __truediv__(self, other: Any) -> Any:
        return pointwise(lambda a, b: a / b, self, other)

    def __neg__(self) -> Any:
        return pointwise(lambda a: -a, self)

    def __lt__(self, other: Any) -> bool:
        return bool(self._asked(lambda a, b: a < b, other))

    def __le__(self, other: Any) -> bool:
        return bool(self._asked(lambda a, b: a <= b, other))

    def __gt__(self, other: Any) -> bool:
        return bool(self._asked(lambda a, b: a > b, other))

    def __ge__(self, other: Any) -> bool:
        return bool(self._asked(lambda a, b: a >= b, other))

    def __eq__(self, other: object) -> bool:
        return bool(self._asked(lambda a, b: a == b, other))

    def __bool__(self) -> bool:
        return bool(self._asked(lambda a, b: bool(a), 0))

    def __hash__(self) -> int:
        return hash(self.walk.turn(self))

    def __float__(self) -> float:
        return float(self.walk.turn(self))

    def __int__(self) -> int:
        return int(self.walk.turn(self))

    def __index__(self) -> int:
        return int(self.walk.turn(self))

    def _asked(self, test: Callable[[Any, Any], Any], other: Any) -> Any:
        found = pointwise(test, self, other)
        return self.walk.turn(found) if isinstance(found, Value) else found


class Token(Value):
    """A token that was drawn and not looked at: its own axis."""

    def __init__(self, walk: Walk, axis: int, support: Sequence[int]) -> None:
        super().__init__(walk, (axis,), {(x,): x for x in support})


@dataclass(frozen=True)
class Row(Sequence[Any]):
    """One row for every case of some tokens. `whole()` gives it as a Value of tuples, computed when first read."""

    whole: Callable[[], Any]
    vocabulary: int

    @cached_property
    def cases(self) -> Any:
        return self.whole()

    def __len__(self) -> int:
        return self.vocabulary

    def __getitem__(self, x: Any) -> Any:
        return pointwise(lambda row, at: row[at], self.cases, x)

    def __iter__(self) -> Iterator[Any]:
        return (self[x] for x in range(self.vocabulary))


def pointwise(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function` of every case of its arguments; plain arguments give a plain result. No answer in a case: no case."""
    joined: Value | None = None
    for argument in arguments:
        if isinstance(argument, Value):
            joined = with_tuples(argument) if joined is None else joined_cases(joined, argument)
    if joined is None:
        return function(*arguments)
    cells: Cells = {}
    for key, values in joined.cells.items():
        rest = iter(values)
        try:
            cells[key] = function(*(next(rest) if isinstance(a, Value) else a for a in arguments))
        except (ValueError, ZeroDivisionError):
            continue
    return Value(joined.walk, joined.axes, cells)


def with_tuples(value: Value) -> Value:
    return Value(value.walk, value.axes, {key: (cell,) for key, cell in value.cells.items()})


def joined_cases(a: Value, b: Value) -> Value:
    """The cases in which both are defined; a's tuples with b's cell put behind."""
    axes, pairs = matched(a.axes, a.cells, b.axes, b.cells)
    return Value(a.walk, axes, {key: (*x, y) for key, x, y in pairs})


def matched(
    a: tuple[int, ...], x: Mapping[Key, Any], b: tuple[int, ...], y: Mapping[Key, Any]
) -> tuple[tuple[int, ...], Iterator[tuple[Key, Any, Any]]]:
    """The union of two lists of axes, and (key, cell of x, cell of y) for all keys that agree on what they share."""
    shared, new = [axis for axis in a if axis in b], [axis for axis in b if axis not in a]
    at_a, at_b, at_new = ([axes.index(i) for i in of] for axes, of in ((a, shared), (b, shared), (b, new)))
    by_shared: dict[Key, list[tuple[Key, Any]]] = {}
    for key, cell in y.items():
        by_shared.setdefault(tuple(key[i] for i in at_b), []).append((tuple(key[i] for i in at_new), cell))
    pairs = (
        (key + more, cell, other)
        for key, cell in x.items()
        for more, other in by_shared.get(tuple(key[i] for i in at_a), ())
    )
    return (*a, *new), pairs


# --- where rows come from, and what is done to them ------------------------------------------------------------------


def table(row_after: Callable[[Key], Sequence[Weight]], memory: int | None = None) -> Callable[[tuple[Any, ...]], Row]:
    """`row_after(prefix)` for prefixes in which tokens are unknown. It sees the last `memory` tokens (None: all), so
    prefixes that agree on those have one row by construction."""
    vocabulary: list[int] = []

    def after(prefix: tuple[Any, ...]) -> Row:
        window = recent(prefix, memory)
        if not vocabulary:
            vocabulary.append(len(row_after(tuple(min(t.cells)[0] if isinstance(t, Value) else t for t in window))))
        return Row(lambda: pointwise(lambda *tokens: tuple(row_after(tokens)), *window), vocabulary[0])

    return after


def recent(prefix: tuple[Any, ...], memory: int | None) -> tuple[Any, ...]:
    """The last `memory` tokens."""
    return prefix if memory is None else prefix[max(0, len(prefix) - memory) :]


def as_value(argument: Any) -> Any:
    """A row, or a sequence of numbers some of which are values, as one value of tuples; anything else as it is."""
    if isinstance(argument, Row):
        return argument.cases
    if isinstance(argument, list | tuple) and any(isinstance(entry, Value) for entry in argument):
        return pointwise(lambda *entries: entries, *argument)
    return argument


def case_by_case(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of rows and tokens, such as `residual`, done in every case by the text that is already there."""

    def lifted(*arguments: Any) -> Any:
        found = pointwise(function, *map(as_value, arguments))
        if not isinstance(found, Value):
            return Row(lambda: found, len(found)) if isinstance(found, tuple) else found
        some = next(iter(found.cells.values()), ())
        return Row(lambda: found, len(some)) if isinstance(some, tuple) else found

    return lifted


def opened(module: ModuleType) -> dict[str, Any]:
    """The names of a module over which tokens can stay unknown: its own functions, unchanged, over the arithmetic of
    `exact.row` done case by case."""
    names: dict[str, Any] = dict(vars(module))
    for name, thing in vars(module).items():
        if isinstance(thing, FunctionType) and thing.__module__ == row_arithmetic.__name__:
            names[name] = case_by_case(thing)
        elif isinstance(thing, FunctionType) and thing.__module__ == module.__name__:
            own = FunctionType(thing.__code__, names, thing.__name__, thing.__defaults__, thing.__closure__)
            own.__kwdefaults__ = thing.__kwdefaults__
            names[name] = own
    return names


def values_of(result: Any) -> Iterator[Value]:
    """The values in a result of nested tuples."""
    if isinstance(result, Value):
        yield result
    elif isinstance(result, tuple):
        yield from itertools.chain.from_iterable(map(values_of, result))


def put_in(result: Any, known: Mapping[int, int]) -> Any:
    """The result with every value replaced by its cell where its axes have the values `known`."""
    if isinstance(result, Value):
        return result.cells[tuple(known[axis] for axis in result.axes)]
    return tuple(put_in(part, known) for part in result) if isinstance(result, tuple) else result
