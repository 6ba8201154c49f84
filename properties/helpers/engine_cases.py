"""What the tests of engine == exact share: blocks that every rule is given, and the way between the two texts."""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from refengine.engine.block import NOTHING
from refengine.engine.block import Block as Tensors
from refengine.engine.block import Round as Batch
from refengine.engine.rules import (
    agreement,
    block,
    greedy,
    iid_candidates,
    leviathan,
    nucleus,
    point_mass,
    typical,
    without_replacement,
)
from refengine.exact.block import Block, Round
from refengine.exact.row import Row
from refengine.exact.rules import agreement as exact_agreement
from refengine.exact.rules import block as exact_block
from refengine.exact.rules import greedy as exact_greedy
from refengine.exact.rules import iid_candidates as exact_iid
from refengine.exact.rules import leviathan as exact_leviathan
from refengine.exact.rules import nucleus as exact_nucleus
from refengine.exact.rules import point_mass as exact_point_mass
from refengine.exact.rules import typical as exact_typical
from refengine.exact.rules import without_replacement as exact_without

CHAIN, TREE, SMALL = "chain", "tree", "small tree"


@dataclass(frozen=True)
class Twins:
    """One rule in its two texts. `drafts` says how candidates come about: drawn iid, distinct, or given."""

    exact: Callable[..., Round]
    engine: Callable[..., Batch]
    shape: str
    drafts: str
    options: tuple[tuple[str, Any], ...] = ()

    def define(self, p: Sequence[Row], block: Block, chance: Any) -> Round:
        return self.exact(p, block, chance, **dict(self.options))

    def run(self, p: Tensor, block: Tensors, coins: Any) -> Batch:
        options = {k: float(v) if isinstance(v, Fraction) else v for k, v in self.options}
        return self.engine(p, block, coins, **options)


TWINS = {
    "leviathan": Twins(exact_leviathan.leviathan, leviathan.leviathan, CHAIN, "iid"),
    "block": Twins(exact_block.block, block.block, CHAIN, "iid"),
    "greedy": Twins(exact_greedy.greedy, greedy.greedy, TREE, "given"),
    "agreement": Twins(exact_agreement.agreement, agreement.agreement, TREE, "given"),
    "point_mass": Twins(exact_point_mass.point_mass, point_mass.point_mass, TREE, "given"),
    "iid_candidates": Twins(exact_iid.iid_candidates, iid_candidates.iid_candidates, TREE, "iid"),
    "without_replacement": Twins(
        exact_without.without_replacement, without_replacement.without_replacement, TREE, "distinct"
    ),
    "typical": Twins(exact_typical.typical, typical.typical, TREE, "given"),
    "typical_inclusive": Twins(exact_typical.typical_inclusive, typical.typical_inclusive, TREE, "given"),
    "nucleus": Twins(exact_nucleus.nucleus, nucleus.nucleus, TREE, "given", (("top_p", Fraction(3, 4)),)),
    "nucleus fast": Twins(
        exact_nucleus.nucleus, nucleus.nucleus, SMALL, "given", (("fast", True), ("top_p", Fraction(1)))
    ),
}

SHAPES = {
    CHAIN: [(), (-1,), (-1, 0), (-1, 0, 1)],
    SMALL: [(), (-1, 0), (-1, -1, 0)],  # where every leaf draws for itself, runs are many
    TREE: [(), (-1,), (-1, 0, 1), (-1, -1, -1), (-1, -1, 0, 1), (-1, 0, -1, 0, 2), (-1, -1, 1, 1, 0)],
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
        if twins.drafts == "given":
            row, support = None, list(range(vocabulary))
        else:
            row = q[siblings[0]] if siblings else rng.choice((p[parent + 1], dyadic_row(rng, bits, vocabulary)))
            assert row is not None
            support = [x for x, qx in enumerate(row) if qx > 0]
        if twins.drafts == "distinct":
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
