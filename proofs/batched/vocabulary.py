"""The vocabulary as an axis without a length, and where a token stands on it."""

from typing import Any

from proofs.batched.terms import Entry, Stray, Token


class Unbounded(LookupError):
    """A word that does not mean the same on every vocabulary."""


class Vocabulary:
    """The length of a vocabulary. It is no number: what depends on it is refused."""

    def refuse(self, *_: Any) -> Any:
        raise Unbounded("the text depends on how many tokens the vocabulary has")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __index__ = __int__ = refuse  # type: ignore
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __floordiv__ = __truediv__ = refuse
    __hash__ = None  # type: ignore[assignment]


def column_of(place: Entry) -> int | None:
    """Where a row shows the entry of a token; None where that entry may be anything."""
    if not isinstance(place, Token):
        if not (place.drafted if isinstance(place, Stray) else int(place) >= 0):
            raise IndexError("a row is looked up at a number below 0")
        return None  # of the other lane; or of no token at all, where a text looks up an arbitrary one
    column = place.column()
    if column == place.classes:
        raise Unbounded(f"a row is looked up at {place}, which nobody drafted")
    return column
