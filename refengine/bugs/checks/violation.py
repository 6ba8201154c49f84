"""What a check returns when its claim does not hold. None means that it holds."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


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
