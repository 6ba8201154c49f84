"""A law: what a test of Hypothesis is made of, before it has settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st


@dataclass(frozen=True)
class Law:
    """A law, the strategies of its arguments, and how many cases of it a quick run tries."""

    holds: Callable[..., None]
    cases: Mapping[str, st.SearchStrategy[Any]]
    quick: int

    def test(self) -> Callable[[], None]:
        """As a test of Hypothesis, which may still be given settings or a failure to reproduce."""

        def holds(**drawn: Any) -> None:
            self.holds(**drawn)

        return given(**self.cases)(holds)
