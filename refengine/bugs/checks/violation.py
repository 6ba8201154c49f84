"""What a check returns when its claim does not hold. None means that it holds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

Case: TypeAlias = tuple[str, Any, Any]  # what, got, want


@dataclass(frozen=True)
class Violation:
    """The first case, in order of size, in which the claim is false.

    what     one line
    witness  the case as plain JSON: rows as strings such as "1/2 1/2"
    tv       how far the law is off, where the claim is about a law
    """

    what: str
    witness: dict[str, Any] = field(default_factory=dict)
    tv: Fraction | None = None


def text(row: Any) -> str:
    """A row as people write it: "1/2 1/3 1/6"."""
    return " ".join(str(x) for x in row)


def first(cases: Iterator[Case]) -> Violation | None:
    """The first case in which what is got is not what is wanted."""
    for what, got, want in cases:
        if got != want or type(got) is not type(want):
            return Violation(f"{what}: {got!r}, not {want!r}", {"case": what, "got": repr(got), "want": repr(want)})
    return None


def refused(call: Callable[[], Any], words: str) -> Case:
    """The case that `call` is refused with one line that holds `words`."""
    said = ""
    try:
        call()
    except (ValueError, RuntimeError, LookupError) as error:
        said = f"{type(error).__name__}: {error}"
    return f"refusal naming {words!r}", said if words not in said else words, words
