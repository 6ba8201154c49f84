"""The inputs of the exact checks: tables of p and q, from the smallest to the more tangled, the same in every run.

A table gives a row for every path of drafted tokens, so that rows may differ by depth and depend on what was drafted:
a rule that looks at the wrong row is invisible where all rows are alike. Small ones come first, hence the first table
on which a claim fails is a smallest witness. Zeros, p = q, disjoint and reversed rows are all among the small ones.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

Row: TypeAlias = tuple[Fraction, ...]
Path: TypeAlias = tuple[int, ...]

PAIRS = [(1, 1), (1, 0), (0, 1), (2, 1), (1, 2), (3, 1)]
TRIPLES = [(1, 1, 1), (1, 1, 0), (0, 0, 1), (3, 2, 1), (1, 2, 3)]


@dataclass(frozen=True)
class Table:
    """Rows of target and draft after every path; p is given one level deeper than q."""

    vocabulary: int
    gamma: int
    p_rows: dict[Path, Row]
    q_rows: dict[Path, Row]

    def p(self, path: Path) -> Row:
        return self.p_rows[path]

    def q(self, path: Path) -> Row:
        return self.q_rows[path]

    def as_json(self) -> dict[str, object]:
        def rows(table: dict[Path, Row]) -> dict[str, str]:
            return {" ".join(map(str, path)): " ".join(map(str, row)) for path, row in table.items()}

        return {"vocabulary": self.vocabulary, "gamma": self.gamma, "p": rows(self.p_rows), "q": rows(self.q_rows)}


def share(weights: tuple[int, ...]) -> Row:
    """Integer weights as probabilities."""
    return tuple(Fraction(w, sum(weights)) for w in weights)


def paths(vocabulary: int, depth: int) -> list[Path]:
    """Every path of at most `depth` tokens, shortest first."""
    return [path for d in range(depth + 1) for path in itertools.product(range(vocabulary), repeat=d)]


def flat(p: tuple[int, ...], q: tuple[int, ...]) -> Table:
    """One draft, the same rows everywhere."""
    v = len(p)
    return Table(v, 1, dict.fromkeys(paths(v, 1), share(p)), {(): share(q)})


def tangled(vocabulary: int, gamma: int, seed: int) -> Table:
    """Rows that depend on the whole path, with zeros; the seed fixes them."""
    generator = random.Random(seed)

    def weights() -> Row:
        while True:
            drawn = tuple(generator.choice((0, 1, 1, 2, 3, 5)) for _ in range(vocabulary))
            if sum(drawn):
                return share(drawn)

    return Table(
        vocabulary,
        gamma,
        {path: weights() for path in paths(vocabulary, gamma)},
        {path: weights() for path in paths(vocabulary, gamma - 1)},
    )


@cache
def tables() -> tuple[Table, ...]:
    """All of them, smallest first."""
    return tuple(_tables())


def _tables() -> Iterator[Table]:
    p: tuple[int, ...]
    q: tuple[int, ...]
    for p, q in itertools.product(PAIRS, repeat=2):
        yield flat(p, q)
    for p, q in itertools.product(TRIPLES, repeat=2):
        yield flat(p, q)
    for seed in range(6):
        yield tangled(2, 1, seed)
    for seed in range(4):
        yield tangled(2, 2, seed)
    for seed in range(3):
        yield tangled(3, 2, seed)
    yield tangled(2, 3, 0)
