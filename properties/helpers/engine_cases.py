"""What the tests of engine == exact share: blocks that every rule is given, and the way between the two texts."""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from refengine.engine.block import NOTHING
from refengine.engine.block import Block as Tensors
from refengine.engine.block import Round as Batch
from refengine.engine.rules import RULES as ENGINE
from refengine.exact.block import Block, Round
from refengine.exact.row import Row
from refengine.exact.rules import RULES


@dataclass(frozen=True)
class Twins:
    """One rule in its two texts, under one setting. Shape and drawing of its candidates are its card's."""

    exact: Callable[..., Round]
    engine: Callable[..., Batch]
    shape: str
    drawn: str | None
    options: Mapping[str, Any]

    def define(self, p: Sequence[Row], block: Block, chance: Any) -> Round:
        return self.exact(p, block, chance, **self.options)

    def run(self, p: Tensor, block: Tensors, coins: Any) -> Batch:
        options = {k: float(v) if isinstance(v, Fraction) else v for k, v in self.options.items()}
        return self.engine(p, block, coins, **options)


TWINS = {
    ", ".join([card.name, *options]): Twins(card.rule, ENGINE[card.name], card.shape, card.drawn, options)
    for card in RULES.values()
    for options in card.settings()
}

SHAPES = {
    "chain": [(), (-1,), (-1, 0), (-1, 0, 1)],
    "tree": [(), (-1,), (-1, 0, 1), (-1, -1, -1), (-1, -1, 0, 1), (-1, 0, -1, 0, 2), (-1, -1, 1, 1, 0)],
}


@dataclass(frozen=True)
class Case:
    p: tuple[Row, ...]
    block: Block


def case(twins: Twins, rng: random.Random, bits: int, vocabulary: int = 3) -> Case:
    """A random block with dyadic rows (integers / 2^bits): zeros, one-hot, p = q and disjoint rows all come up."""
    parents = rng.choice(SHAPES[twins.shape])
    p = tuple(dyadic_row(rng, bits, vocabulary) for _ in range(len(parents) + 1))
    tokens: list[int] = []
    q: list[Row | None] = []
    kept_parents: list[int] = []
    for parent in parents:
        if parent >= len(tokens):  # its parent was left out below
            continue
        siblings = [j for j, up in enumerate(kept_parents) if up == parent]
        if twins.drawn is None:
            row, support = None, list(range(vocabulary))
        else:
            row = q[siblings[0]] if siblings else rng.choice((p[parent + 1], dyadic_row(rng, bits, vocabulary)))
            assert row is not None
            support = [x for x, qx in enumerate(row) if qx > 0]
        if twins.drawn == "distinct":
            support = [x for x in support if x not in {tokens[j] for j in siblings}]
        if not support:
            continue
        tokens.append(rng.choice(support))
        q.append(row)
        kept_parents.append(parent)
    return Case(p[: len(tokens) + 1], Block(tuple(tokens), tuple(kept_parents), tuple(q), (None,) * len(tokens)))


def dyadic_row(rng: random.Random, bits: int, vocabulary: int) -> Row:
    """Integers / 2^bits that sum to 1; about every third row has a zero, some are one-hot."""
    cuts = sorted(rng.choice((0, 1 << bits, *range(1, 1 << bits))) for _ in range(vocabulary - 1))
    edges = [0, *cuts, 1 << bits]
    row = [Fraction(b - a, 1 << bits) for a, b in itertools.pairwise(edges)]
    rng.shuffle(row)
    return tuple(row)


def tensors(cases: Sequence[Case], poison: bool = True) -> tuple[Tensor, Tensors]:
    """The cases as lanes of one batch, float32. Places without a draft hold NaN, where `poison` asks for it."""
    n = max(len(c.block.tokens) for c in cases)
    vocabulary = len(cases[0].p[0])
    unused = float("nan") if poison else 0.0
    p = torch.full((len(cases), n + 1, vocabulary), unused)
    tokens = torch.full((len(cases), n), NOTHING)
    parents = torch.arange(-1, n - 1).repeat(len(cases), 1)
    q = torch.full((len(cases), n, vocabulary), unused)
    for lane, c in enumerate(cases):
        size = len(c.block.tokens)
        p[lane, : size + 1] = torch.tensor([[float(v) for v in row] for row in c.p])
        tokens[lane, :size] = torch.tensor(c.block.tokens)
        parents[lane, :size] = torch.tensor(c.block.parents)
        for j, row in enumerate(c.block.q):
            if row is not None:
                q[lane, j] = torch.tensor([float(v) for v in row])
    return p, Tensors(tokens, parents, q)


def rounds(batch: Batch) -> list[Round]:
    """The lanes of a batched round as exact Rounds; asserts that all beyond the length is NOTHING."""
    out = []
    for tokens, path, length in zip(batch.tokens.tolist(), batch.path.tolist(), batch.length.tolist(), strict=True):
        assert set(tokens[length:]) <= {NOTHING}, "tokens beyond the length"
        assert set(path[length - 1 :]) <= {NOTHING}, "a path beyond the length"
        out.append(Round(tuple(tokens[:length]), tuple(path[: length - 1])))
    return out
