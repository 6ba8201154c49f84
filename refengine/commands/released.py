"""Released drafters and their targets, with what was published of them: `released.toml`, read and held to its form."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Figures:
    """What was published of a pair, once.

    tokens_per_pass       by benchmark: accepted drafts and the target's own token
    accepted_by_position  by benchmark: of the drafts that were judged at a position, from the first on
    """

    source: str
    conditions: str
    tokens_per_pass: Mapping[str, float] = field(default_factory=dict)
    accepted_by_position: Mapping[str, list[float]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """In words, a line each."""
        passes = ", ".join(f"{name} {value:g}" for name, value in self.tokens_per_pass.items())
        positions = [
            f"accepted by position, {name}: {' '.join(format(value, 'g') for value in values)}"
            for name, values in self.accepted_by_position.items()
        ]
        where = f"({self.conditions}; {self.source})"
        return [f"{said} {where}" for said in [f"tokens per pass: {passes}"] * bool(passes) + positions]


@dataclass(frozen=True)
class Pair:
    """A released drafter: its repository, that of its target, and the layout by which it is read."""

    drafter: str
    target: str
    layout: str
    source: str
    note: str = ""
    figures: tuple[Figures, ...] = ()


@cache
def pairs() -> tuple[Pair, ...]:
    """All that are known, in the order of the file; sources are written out."""
    data = _data()
    return tuple(_pair(entry, data["sources"]) for entry in data["pair"])


def without_release() -> frozenset[str]:
    """Layouts that are read here and of which no released pair is known."""
    return frozenset(_data()["without_release"])


def known(drafter: str, target: str) -> Pair | None:
    """The pair of these repositories; None where it is not listed."""
    return next((pair for pair in pairs() if (pair.drafter, pair.target) == (drafter, target)), None)


def _data() -> dict[str, Any]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def _pair(entry: dict[str, Any], sources: dict[str, str]) -> Pair:
    figures = tuple(Figures(**{**one, "source": sources[one["source"]]}) for one in entry.get("figures", ()))
    return Pair(**{**entry, "source": sources[entry["source"]], "figures": figures})
