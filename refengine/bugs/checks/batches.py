"""Blocks that both texts of every rule are given, as exact blocks and as lanes of one batch."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import torch
from torch import Tensor

from refengine.bugs.checks.tables import Row
from refengine.engine import block as lanes
from refengine.engine.rules import RULES as ENGINE
from refengine.exact import block as one
from refengine.exact.rules import RULES
from refengine.source_edits.imports import touched

Emitted: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # tokens, path
SHAPES = {
    "chain": [(-1, 0, 1), (-1, 0), (-1,), ()],
    # The last is deeper than the vocabulary is large.
    "tree": [(-1, -1, 0, 1), (-1, -1, -1), (-1, 0, -1, 0), (-1, -1, 1, 1, 0), (-1,), (), (-1, 0, 1, 2)],
}
HALF = Fraction(1, 2)
COINS = ("refengine.engine.coins",)  # every rule is run on them


@dataclass(frozen=True)
class Pair:
    """One rule in its two texts, under one setting. `drawn`: how siblings come about, as its card says."""

    name: str
    exact: Callable[..., one.Round]
    batched: Callable[..., lanes.Round]
    shape: str
    drawn: str | None
    options: Mapping[str, Any]

    def define(self, case: "Case", chance: Any) -> Emitted:
        verdict = self.exact(case.p, case.block, chance, **self.options)
        return verdict.tokens, verdict.path

    def run(self, cases: Sequence["Case"], coins: Any) -> list[Emitted]:
        return unpadded(self.batched(*batch(cases), coins, **self.floats()))

    def floats(self) -> dict[str, Any]:
        """The options as the batched text takes them."""
        return {k: float(v) if isinstance(v, Fraction) else v for k, v in self.options.items()}


EVERY = tuple(
    Pair(", ".join([card.name, *options]), card.rule, ENGINE[card.name], card.shape, card.drawn, options)
    for card in RULES.values()
    for options in card.settings()
)


# An edit of this process can change what these do, and no other.
PAIRS = tuple(pair for pair in EVERY if touched((pair.exact.__module__, pair.batched.__module__, *COINS)))


@dataclass(frozen=True)
class Case:
    p: tuple[Row, ...]
    block: one.Block


def cases(pair: Pair, count: int, bits: int = 3, vocabulary: int = 3) -> list[Case]:
    """`count` blocks of every shape with dyadic rows (integers / 2^bits), the same in every run."""
    generator = random.Random(f"{pair.drawn or 'given'} {bits}")
    found = [made(pair, parents, generator, bits, vocabulary) for parents in SHAPES[pair.shape] for _ in range(count)]
    return found + (narrow(pair) if pair.shape == "tree" and pair.drawn and vocabulary == 3 else [])


def narrow(pair: Pair) -> list[Case]:
    """After token 0 was refused, what is left of p is below q at token 1: rare among random rows."""
    p, q = (tuple(Fraction(w, 16) for w in row) for row in ((4, 7, 5), (8, 6, 2)))
    families = [(0, 1, 2)] if pair.drawn == "distinct" else [(0, 1, 2), (0, 0, 1), (0, 1, 1)]
    return [Case((p,) * 4, one.Block(tokens, (-1,) * 3, (q,) * 3, (None,) * 3)) for tokens in families]


def made(pair: Pair, parents: Sequence[int], generator: random.Random, bits: int, vocabulary: int) -> Case:
    """Siblings share a row; it equals the target's every third time. Without replacement they differ."""
    p = [dyadic(generator, bits, vocabulary) for _ in range(len(parents) + 1)]
    tokens: list[int] = []
    q: list[Row | None] = []
    kept: list[int] = []
    for parent in parents:
        elder = [j for j, up in enumerate(kept) if up == parent]
        row = (
            q[elder[0]]
            if elder
            else generator.choice((p[parent + 1], *(dyadic(generator, bits, vocabulary) for _ in range(2))))
        )
        taken = {tokens[j] for j in elder} if pair.drawn == "distinct" else set()
        support = [x for x in range(vocabulary) if pair.drawn is None or (row and row[x] > 0 and x not in taken)]
        if parent < len(kept) and support:
            tokens.append(generator.choice(support))
            q.append(row if pair.drawn else None)
            kept.append(parent)
    return Case(tuple(p[: len(tokens) + 1]), one.Block(tuple(tokens), tuple(kept), tuple(q), (None,) * len(tokens)))


def dyadic(generator: random.Random, bits: int, vocabulary: int) -> Row:
    """Integers / 2^bits with sum 1; two of three have no zero."""
    whole = 1 << bits
    if generator.randrange(3):
        cuts = sorted(generator.sample(range(1, whole), vocabulary - 1))
    else:
        cuts = sorted(generator.choice((0, whole, generator.randrange(whole))) for _ in range(vocabulary - 1))
    row = [Fraction(b - a, whole) for a, b in zip([0, *cuts], [*cuts, whole], strict=True)]
    generator.shuffle(row)
    return tuple(row)


def batch(chosen: Sequence[Case], spare: int = 1) -> tuple[Tensor, lanes.Block]:
    """The cases as lanes, float32, with `spare` places more than the longest has: no lane is full.

    What no rule may look at holds something else in every lane: NaN, huge and negative numbers; and what only a guard
    keeps out, namely rows that are distributions, of no lane or of another, and parents that are nodes of the block.
    """
    n, vocabulary = max(len(case.block.tokens) for case in chosen) + spare, len(chosen[0].p[0])
    p, q = (torch.full((len(chosen), size, vocabulary), 1 / 4) for size in (n + 1, n))
    tokens = torch.full((len(chosen), n), -1)
    parents = torch.full((len(chosen), n), -1)
    for lane, case in enumerate(chosen):
        size, kind = len(case.block.tokens), lane + sum(case.block.tokens)
        p[lane], q[lane] = foreign(chosen[lane - 1], kind, n + 1), foreign(chosen[lane - 1], kind + 1, n)
        parents[lane] = torch.tensor((-1, size - 1, 99, 0, -99)[kind % 5])
        p[lane, : size + 1] = tensor(case.p)
        tokens[lane, :size] = torch.tensor(case.block.tokens, dtype=torch.long)
        parents[lane, :size] = torch.tensor(case.block.parents, dtype=torch.long)
        for node, row in enumerate(case.block.q):
            if row is not None:
                q[lane, node] = tensor((row,))[0]
    given = chosen[0].block.q and chosen[0].block.q[0] is None
    return p, lanes.Block(tokens, parents, None if given else q)


def foreign(other: Case, kind: int, size: int) -> Tensor:
    """Rows that a lane must not look at, [size, V]: another lane's, or one of five kinds beside."""
    vocabulary, numbers = len(other.p[0]), torch.arange(size)
    fill = (1 / vocabulary, float("nan"), 1e30, -1.0)
    if kind % 6 < len(fill):
        return torch.full((size, vocabulary), fill[kind % 6])
    return torch.eye(vocabulary)[numbers % vocabulary] if kind % 6 == 4 else tensor(other.p)[numbers % len(other.p)]


def tensor(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([[float(w) for w in row] for row in rows])


def unpadded(verdict: lanes.Round) -> list[Emitted]:
    """Every lane's tokens and path; whatever stands beyond its length is kept in sight, as it should be -1."""
    out: list[Emitted] = []
    if verdict.tokens.shape[1] != verdict.path.shape[1] + 1:
        return [((), ())] * len(verdict.length)  # one column more than there can be nodes: no round at all
    for tokens, path, length in zip(*(t.tolist() for t in (verdict.tokens, verdict.path, verdict.length)), strict=True):
        rest = tuple(x for x in tokens[length:] if x != -1), tuple(j for j in path[max(0, length - 1) :] if j != -1)
        out.append(((*tokens[:length], *rest[0]), (*path[: max(0, length - 1)], *rest[1])))
    return out
