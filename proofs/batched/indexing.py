"""How a tensor of terms is looked at and written to by an index: a number, a slice, a condition, `gather`, `scatter`.

What is right of few lanes and few places may be wrong of more: an index that tells some of them from the others, except
the first place or the last, is refused. So is one that reaches the vocabulary, except by a token of each lane.
"""

from typing import Any

import numpy as np
import torch
import z3

from proofs.batched.functions import promoted
from proofs.batched.terms import ANY, Entry, Stray
from proofs.batched.vocabulary import Unbounded, column_of


def gather(terms: Any, dim: int, index: Any) -> Any:
    places = terms.lift(index).array
    if terms.rows:
        along_the_vocabulary(terms, dim, index)
        shown = lambda row, column: ANY if column is None else row[column]  # noqa: E731
        return terms.filled(places.shape, lambda at: shown(terms.array[at[:-1]], column_of(places[at])))
    length = terms.array.shape[dim]
    return terms.filled(places.shape, lambda at: terms.array[moved(at, dim, within(places[at], length))])


def scatter(terms: Any, dim: int, index: Any, value: Any) -> Any:
    """Where two values go to one place, torch does not say which of them stays: it may be anything."""
    places, out = terms.lift(index).array, terms.array.copy()
    values = np.broadcast_to(terms.lift(value).array, places.shape)
    if terms.rows:
        along_the_vocabulary(terms, dim, index)
    written_to = dict[tuple[int, ...], Entry]()
    for at in np.ndindex(*places.shape):
        place = column_of(places[at]) if terms.rows else places[at]
        if place is None:
            for i in range(out.shape[dim]):
                out[moved(at, dim, i)] = anything(terms)
        else:
            there = moved(at, dim, within(place, out.shape[dim]))
            once = there not in written_to or is_same(written_to[there], values[at])
            written_to[there] = out[there] = values[at] if once else anything(terms)
    return terms.made(out, rows=terms.rows)


def anything(terms: Any) -> Entry:
    """Of that kind of number."""
    if terms.dtype == torch.bool:
        return terms.world.unknown()
    return Stray(terms.world, drafted=False) if terms.dtype == torch.int64 else ANY


def is_same(one: Entry, other: Entry) -> bool:
    if z3.is_expr(one) and z3.is_expr(other):
        return bool(one.eq(other))
    return one is other or (type(one) is type(other) and isinstance(one, bool | int | float) and one == other)


def taken(terms: Any, index: Any) -> Any:
    """`terms[index]`"""
    made = terms.made(terms.array[places_of(terms, index)], rows=terms.rows)
    made.cut = leaves_out(terms, index) or terms.cut
    return made


def written(terms: Any, index: Any, value: Any) -> None:
    """`terms[index] = value`"""
    if promoted(terms, value) != terms.dtype:
        raise NotImplementedError("what is put into a tensor is rounded to its kind")
    value = terms.lift(value)
    if any(np.shares_memory(terms.array, array) for array in terms.world.handed):
        raise NotImplementedError("what the rule was given is written over")
    if value.rows != terms.rows and value.array.ndim and value.array.shape[-1] != 1:
        raise Unbounded("what has another axis is put in the place of a vocabulary, or the other way round")
    terms.array[places_of(terms, index)] = value.array


def places_of(terms: Any, index: Any) -> Any:
    """The index as numpy takes it: what is a term in it says which way the text goes."""
    parts = index if isinstance(index, tuple) else (index,)
    if terms.rows:
        before_rows(terms, parts)
    if isinstance(parts[0], int) or (isinstance(parts[0], slice) and parts[0] != slice(None)):
        raise NotImplementedError(
            "some lanes are looked at and others are not: it may be wrong of more lanes than are shown"
        )
    plain = [part.numpy() if isinstance(part, torch.Tensor) else part for part in parts]
    found = tuple(part.decided() if isinstance(part, type(terms)) else part for part in plain)
    for part, length in zip(found, terms.array.shape, strict=False):
        if isinstance(part, np.ndarray) and part.dtype != bool:
            assert all(within(int(i), length) >= 0 for i in part.reshape(-1))
    return found


def along_the_vocabulary(terms: Any, dim: int, index: Any) -> None:
    if dim % terms.array.ndim != terms.array.ndim - 1 or terms.lift(index).rows:
        raise Unbounded("rows are looked up at a token of each lane only")


def before_rows(terms: Any, parts: tuple[Any, ...]) -> None:
    """Refuse an index that reaches the vocabulary; that of a leading axis leaves it the last one."""
    axes = [getattr(p, "ndim", 0) if getattr(p, "dtype", None) == torch.bool else 1 for p in parts if p is not None]
    if any(part is Ellipsis for part in parts) or sum(axes) >= terms.array.ndim:
        raise Unbounded("an index reaches the vocabulary")


def leaves_out(terms: Any, index: Any) -> bool:
    """Whether it leaves places out; refuses all that does more than leave out the first or the last one, once."""
    parts = zip(index if isinstance(index, tuple) else (index,), terms.array.shape, strict=False)
    ends = [
        (part.start or 0, length if part.stop is None else part.stop, length, part.step)
        for part, length in parts
        if isinstance(part, slice) and part != slice(None)
    ]
    if (ends and terms.cut) or any(step not in (None, 1) for *_, step in ends):
        raise NotImplementedError("places are left out more than once: it may be wrong where there are more")
    if any(start not in (0, 1) or stop not in (-1, length - 1, length) for start, stop, length, _ in ends):
        raise NotImplementedError("more places than one are left out: it may be wrong where there are more")
    return bool(ends)


def moved(at: tuple[int, ...], dim: int, place: int) -> tuple[int, ...]:
    """The place in an array that is `at`, but for one axis."""
    dim %= len(at)
    return (*at[:dim], place, *at[dim + 1 :])


def within(place: Entry, length: int) -> int:
    """An index that torch would take."""
    place = int(place)
    if not 0 <= place < length:
        raise IndexError(f"index {place} of {length} entries")
    return place
