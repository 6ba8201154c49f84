"""A tensor of terms, and the methods of torch's that the rules use on it. A word that is not here is refused.

The rules run unchanged: torch hands every call that meets such a tensor to `__torch_function__`. Nothing is rounded
here: rows that are given are float32 in name, and who reckons with them has to call them double before; `double` shares
its entries with what it was called on, as it does where that is float64 already. A device is not known.

The vocabulary is an axis without a length, the last one of every tensor that has it. What stands there is shown at
every drafted token and at any other one, and five things can be done along it: words that go token by token, a look at
or a change of the entry of a token, the mass, the greatest, and a coin's choice. Everything else is refused, so a text
that runs here runs in the same steps on every vocabulary.
"""

import builtins
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
import z3
from torch.overrides import TorchFunctionMode

from proofs.batched.functions import WORDS, promoted, where
from proofs.batched.indexing import gather, scatter, taken, written
from proofs.batched.masses import greatest_of, weighed
from proofs.batched.powers import head_of
from proofs.batched.terms import (
    ANY,
    Entry,
    Paths,
    Stray,
    Token,
    both,
    chosen,
    compared,
    computed,
    either,
    opposite,
    same,
    simple,
)
from proofs.batched.vocabulary import Unbounded, Vocabulary

LONGEST = 1_000  # tensors that one run makes; a run that makes more does not end


def entries(shape: Sequence[int], of: Callable[[tuple[int, ...]], Entry]) -> Any:
    out = np.empty(tuple(shape), dtype=object)
    for at in np.ndindex(*out.shape):
        out[at] = of(at)
    return out


class Terms:
    """A tensor whose entries are terms: `dtype` says bool, int64, float32 or float64, whatever the entries are.

    `rows` says that its last axis is the vocabulary: an entry for each class of drafted tokens, and one for any other.
    `moved` says that these are numbers of nodes or places, each one beside what it was: none is moved further.
    `cut` says that a place was left out at an end: no other is, or what is right of few places may be wrong of more.
    """

    device = torch.device("cpu")

    def __init__(self, array: Any, dtype: torch.dtype, world: Paths, rows: bool = False) -> None:
        self.array, self.dtype, self.world, self.rows = array, dtype, world, rows
        self.moved = self.cut = False

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        world = next(t.world for t in flattened((*args, *(kwargs or {}).values())) if isinstance(t, cls))
        method = func is getattr(torch.Tensor, func.__name__, None)
        word = None if method else WORDS.get(func.__name__)
        word = word or getattr(cls, func.__name__, None)
        if word is cls.__setitem__ and not isinstance(args[0], cls):
            raise NotImplementedError("terms are put into a tensor of numbers, which would not show them")
        if word is None:
            raise NotImplementedError(f"torch.{func.__name__} has no meaning on terms")
        first, *others = args
        lifted = lift(first, world) if not isinstance(first, list | tuple | int | float) else first
        return word(lifted, *others, **(kwargs or {}))

    @property
    def shape(self) -> tuple[Any, ...]:
        return (*self.array.shape[:-1], Vocabulary()) if self.rows else tuple(self.array.shape)

    def size(self, dim: int) -> Any:
        return self.shape[dim]

    def dim(self) -> int:
        return int(self.array.ndim)

    ndim = property(dim)

    def __len__(self) -> int:
        return len(self.array)

    def made(self, array: Any, dtype: torch.dtype | None = None, rows: bool = False) -> "Terms":
        self.world.made += 1
        if self.world.made > LONGEST:
            raise RuntimeError("the rule does not end")
        if not isinstance(array, np.ndarray):
            array = entries((), lambda at, entry=array: entry)
        made = Terms(array, dtype or self.dtype, self.world, rows)
        made.moved, made.cut = self.moved and made.dtype == torch.int64, self.cut
        return made

    def filled(
        self, shape: Sequence[int], of: Callable[[tuple[int, ...]], Entry], dtype: Any = None, rows: bool = False
    ) -> "Terms":
        return self.made(entries(shape, of), dtype, rows)

    def lift(self, value: Any) -> "Terms":
        return lift(value, self.world)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"torch.Tensor.{name} has no meaning on terms")

    def bounded(self, dim: int | None = None) -> None:
        """Refuse the vocabulary, or where an axis is named that axis."""
        if self.rows and (dim is None or dim % self.array.ndim == self.array.ndim - 1):
            raise Unbounded("this word does not mean the same on every vocabulary")

    def within_lanes(self, dim: int) -> None:
        """Refuse the vocabulary, and what goes from lane to lane: what is right of three may be wrong of more."""
        self.bounded()
        if dim % self.array.ndim == 0:
            raise NotImplementedError("lanes are counted, or added up")

    def each(self, word: Callable[..., Entry], *others: Any, dtype: torch.dtype | None = None) -> "Terms":
        """The word applied entry by entry."""
        parts = [self, *(self.lift(o) for o in others)]
        rows = any(part.rows for part in parts)
        if rows and any(not part.rows and part.array.ndim and part.array.shape[-1] != 1 for part in parts):
            raise Unbounded("what has another axis stands beside the vocabulary")
        whole = np.broadcast(*(part.array for part in parts))
        found = np.fromiter((word(*values) for values in whole), dtype=object, count=whole.size)
        made = self.made(found.reshape(whole.shape), dtype, rows)
        made.moved = made.dtype == torch.int64 and any(part.moved for part in parts)
        made.cut = any(part.cut for part in parts)
        return made

    # ---- arithmetic and comparisons

    def number(
        self, other: Any, word: Callable[[Any, Any], Any], idle: int | None = None, one: bool = False
    ) -> "Terms":
        """one: whether a whole number is told from another, or is moved to the one beside it."""
        there = self.lift(other)
        dtype = promoted(self, other)
        self.unrounded(there.dtype, dtype)
        dtype = torch.float64 if dtype == torch.float64 else torch.int64
        if dtype == torch.int64 and (not one or self.moved or there.moved):
            raise NotImplementedError("what is right of the first nodes may be wrong of those that are counted so")
        found = self.each(computed(word, idle), other, dtype=dtype)
        found.moved = dtype == torch.int64
        if dtype == torch.float64 and any(map(is_large, found.array.reshape(-1))):
            raise NotImplementedError("a number above two is made: beside it what stands in a row would be rounded")
        return found

    def __add__(self, other: Any) -> "Terms":
        return self.number(other, operator.add, 0, is_one(other))

    def __sub__(self, other: Any) -> "Terms":
        return self.number(other, operator.sub, 0, isinstance(other, Terms) or is_one(other))

    def __rsub__(self, other: Any) -> "Terms":
        return self.number(other, taken_from)

    def __mul__(self, other: Any) -> "Terms":
        return self.number(other, operator.mul, 1)

    def __neg__(self) -> "Terms":
        return self.number(0, taken_from)

    def add(self, other: Any, alpha: int = 1) -> "Terms":
        """A condition that is counted beside several of another number says which way the text goes."""
        turns = torch.from_numpy(self.decided().astype(np.int64)) if alpha != 1 else self
        return turns + (other * alpha)  # type: ignore[return-value]

    __radd__, __rmul__ = __add__, __mul__
    sub, mul, neg, rsub = __sub__, __mul__, __neg__, __rsub__

    def unrounded(self, *kinds: torch.dtype) -> None:
        if torch.float32 in (self.dtype, *kinds):
            raise NotImplementedError("a number of a row is rounded to its own precision: double() is missing")

    def beside(self, other: Any, word: Callable[[Any, Any], Any]) -> "Terms":
        """Compared: torch rounds a number that is no tensor to what it stands beside."""
        if not isinstance(other, Terms | torch.Tensor) and other not in (0, 1):
            self.unrounded()
        return self.each(compared(word, self.world), other, dtype=torch.bool)

    def __lt__(self, other: Any) -> "Terms":
        return self.beside(other, operator.lt)

    def __le__(self, other: Any) -> "Terms":
        return self.beside(other, operator.le)

    def __gt__(self, other: Any) -> "Terms":
        return self.beside(other, operator.gt)

    def __ge__(self, other: Any) -> "Terms":
        return self.beside(other, operator.ge)

    def __eq__(self, other: Any) -> "Terms":  # type: ignore[override]
        there = self.lift(other)
        floats = self.dtype.is_floating_point or there.dtype.is_floating_point
        if floats and not all(is_number(x) and x == 0 for x in there.array.reshape(-1)):
            raise NotImplementedError("two numbers that are rounded are asked to be equal")
        return self.each(same(self.world), there, dtype=torch.bool)

    def __ne__(self, other: Any) -> "Terms":  # type: ignore[override]
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]
    lt, le, gt, ge, eq, ne = __lt__, __le__, __gt__, __ge__, __eq__, __ne__

    def __invert__(self) -> "Terms":
        return self.each(opposite)

    def __and__(self, other: Any) -> "Terms":
        return self.each(both, other)

    def __or__(self, other: Any) -> "Terms":
        return self.each(either, other)

    __rand__, __ror__ = __and__, __or__
    bitwise_not, bitwise_and, bitwise_or = __invert__, __and__, __or__

    # ---- shapes

    def reshape(self, *shape: int) -> "Terms":
        self.bounded()
        return self.made(self.array.reshape(shape))

    def expand(self, *shape: int) -> "Terms":
        self.bounded()
        return self.made(np.broadcast_to(self.array, shape))

    def unbind(self, dim: int = 0) -> tuple["Terms", ...]:
        self.bounded(dim)
        return tuple(self.made(part, rows=self.rows) for part in np.moveaxis(self.array, dim, 0))

    def double(self) -> "Terms":
        return self if self.dtype == torch.float64 else self.made(self.array, torch.float64, self.rows)

    def to(self, *_: Any) -> "Terms":
        raise NotImplementedError("a change of type is not known here")

    # ---- conditions that decide where the text goes

    def decided(self) -> Any:
        """The entries as Python's own booleans or integers."""
        self.bounded()
        if self.dtype == torch.bool:
            return entries(self.shape, lambda at: self.world.forced_bool(self.array[at])).astype(bool)
        return entries(self.shape, lambda at: int(self.array[at])).astype(np.int64)

    def __bool__(self) -> bool:
        return bool(self.decided())

    def any(self, dim: int | None = None) -> "Terms":
        return self.folded(either, False, dim)

    def all(self, dim: int | None = None) -> "Terms":
        return self.folded(both, True, dim)

    def folded(self, word: Callable[[Entry, Entry], Entry], start: Entry, dim: int | None) -> "Terms":
        self.bounded() if dim is None else self.within_lanes(dim)
        rows = self.array.reshape(-1) if dim is None else np.moveaxis(self.array, dim, -1)

        def fold(at: tuple[int, ...]) -> Entry:
            out = start
            for entry in rows[at]:
                out = word(out, entry)
            return out

        return self.filled(rows.shape[:-1], fold)

    # ---- sums, least and greatest

    def sum(self, dim: int) -> "Terms":
        if self.rows and self.dtype == torch.float64 and dim % self.array.ndim == self.array.ndim - 1:
            return self.filled(self.array.shape[:-1], self.mass_at)
        self.within_lanes(dim)
        if self.dtype == torch.bool:
            return self.made(self.decided().sum(dim).astype(object), torch.int64)
        return self.folded(computed(operator.add), 0, dim)

    def mass_at(self, at: tuple[int, ...]) -> Entry:
        """The mass of one row, which from then on is written as a multiple of one that the exact text weighed."""
        if any(entry is ANY for entry in self.array[at]):
            return ANY
        mass = weighed(self.array[at], self.world)
        self.array[at] = mass.columns
        return mass.sum

    def cumsum(self, dim: int) -> "Terms":
        self.within_lanes(dim)
        if self.dtype != torch.bool:
            raise NotImplementedError("only conditions are counted")
        return self.made(self.decided().cumsum(dim).astype(object), torch.int64)

    def amin(self, dim: int) -> "Terms":
        self.within_lanes(dim)
        return self.made(self.decided().min(dim).astype(object))

    def amax(self, dim: int) -> "Terms":
        self.within_lanes(dim)
        return self.made(self.decided().max(dim).astype(object))

    def argmax(self, dim: int) -> "Terms":
        """Of each row its greatest, which may be any token, the same for the same row."""
        if not self.rows or dim % self.array.ndim != self.array.ndim - 1:
            raise NotImplementedError("only the greatest token of a row is known here")
        rows = np.moveaxis(self.array, dim, -1)
        return self.filled(rows.shape[:-1], lambda at: greatest_of(rows[at], self.world), torch.int64)

    def where(self, condition: Any, other: Any) -> "Terms":
        return where(condition, self, other)  # type: ignore[no-any-return]

    def clamp(self, min: Entry = None, max: Entry = None) -> "Terms":
        if max is not None and min is None and self.dtype == torch.float64:
            return where(self < max, self, max)
        if min is None or max is not None:
            raise NotImplementedError("numbers are clamped from one side only")
        if isinstance(min, Terms):
            return where(self < min, min, self)
        if self.dtype == torch.int64:
            return self.each(partial(not_below, least=min))
        at_least = compared(operator.lt, self.world)
        return self.each(lambda e: e if e is ANY else chosen(self.world, whole=False)(at_least(e, min), min, e))

    def head(self, share: Any) -> "Terms":
        """Which tokens of each row `refengine.engine.policy.head` keeps: the stub in mutated.py asks this."""
        if not self.rows:
            raise NotImplementedError("only the head of a row is known here")
        self.unrounded()
        whole = self.lift(share).array[()]
        out = np.empty(self.array.shape, dtype=object)
        for at in np.ndindex(*self.array.shape[:-1]):
            out[at] = head_of(self.array[at], whole, self.world)
        return self.made(out, torch.bool, rows=True)

    gather, scatter, __getitem__, __setitem__ = gather, scatter, taken, written


class Fresh(TorchFunctionMode):
    """A tensor that a text makes out of nothing, to be filled with terms, is one of terms."""

    def __init__(self, world: Paths) -> None:
        super().__init__()
        self.world = world

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        return lift(made, self.world) if func.__name__ in ("zeros", "ones", "full") else made


def taken_from(a: Any, b: Any) -> Any:
    return b - a


def is_one(number: Any) -> bool:
    return type(number) is int and number == 1


def is_number(entry: Entry) -> bool:
    """Whether it depends on no row."""
    return type(entry) in (int, float, Fraction)


def is_large(entry: Entry) -> bool:
    """A number that does not depend on a row, above those that a text may have (`test_engine_texts`)."""
    if z3.is_expr(entry) and z3.is_arith(entry):
        entry = simple(entry)
        entry = entry.as_fraction() if z3.is_rational_value(entry) else 0
    return is_number(entry) and abs(entry) > 2


def not_below(entry: Entry, least: int) -> Entry:
    """A whole number clamped; a token is 0 at least."""
    if isinstance(entry, Stray) and least == 0:
        return Stray(entry.world, drafted=True)
    return entry if isinstance(entry, Token) and least <= 0 else builtins.max(int(entry), least)


def flattened(values: Any) -> list[Any]:
    out = []
    for value in values:
        out += flattened(value) if isinstance(value, list | tuple) else [value]
    return out


def lift(value: Any, world: Paths) -> Terms:
    """Numbers and torch's own tensors as terms."""
    if isinstance(value, Terms):
        return value
    if isinstance(value, torch.Tensor):
        array, kind = np.array(value.tolist(), dtype=object).reshape(tuple(value.shape)), value.dtype
    else:
        array = entries((), lambda at: value)
        kind = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    return Terms(array, kind if kind in (torch.bool, torch.int64, torch.float32) else torch.float64, world)
