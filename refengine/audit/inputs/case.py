"""An input of the audit: a table of rows, `p[lane, position, context, token]` and `q` likewise.

The context after a prefix is computed from its tokens by `step`, so with several contexts p and q depend on what was
drafted; with one they do not. A lane is a row of the batch under `verify_batch`; under the other signatures lanes take
turns, each twice in a row, so that equal inputs come in consecutive calls.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from refengine.evidence.rows import Rows, normalised

Call = TypeVar("Call", int, NDArray[np.int64])
Ids: TypeAlias = NDArray[np.int64]
Noise = Literal["uniform", "race"]  # how the draft is drawn: inverse CDF of torch.rand, or an exponential race


@dataclass(frozen=True)
class Case:
    """p [lanes, gamma + 1, contexts, V], q [lanes, gamma, contexts, V]: float32 values, renormalised in float64."""

    name: str
    p: Rows
    q: Rows
    noise: Noise = "uniform"
    cell: Ids | None = None  # of every id of a wide vocabulary; rows are kept by cells, even within each

    @property
    def lanes(self) -> int:
        return int(self.p.shape[0])

    @property
    def gamma(self) -> int:
        return int(self.q.shape[1])

    @property
    def contexts(self) -> int:
        return int(self.p.shape[2])

    @property
    def vocabulary(self) -> int:
        return int(self.p.shape[3])

    def reach(self, law: Rows | None = None) -> Rows:
        """Expected visits to each site in a round of every lane, where a draft is kept as often as p (or the law in its
        place) and q allow and contexts are equally likely: [lanes, gamma + 1, contexts]."""
        keep = np.minimum((self.p if law is None else law)[:, :-1], self.q).sum(-1).mean(-1)
        visits = np.concatenate([np.ones((self.lanes, 1)), np.cumprod(keep, axis=1)], axis=1)
        return np.asarray(np.repeat(visits[:, :, None], self.contexts, axis=2) / self.contexts)

    @property
    def width(self) -> int:
        """The number of ids."""
        return self.vocabulary if self.cell is None else len(self.cell)

    @property
    def sizes(self) -> Ids | None:
        """The number of ids of each cell, where rows are kept by cells."""
        return None if self.cell is None else np.bincount(self.cell, minlength=self.vocabulary)

    def float32(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The rows that the subject gets."""
        if self.cell is None or self.sizes is None:
            return self.p.astype(np.float32), self.q.astype(np.float32)
        each = 1.0 / self.sizes
        return (self.p * each).astype(np.float32)[..., self.cell], (self.q * each).astype(np.float32)[..., self.cell]

    def narrow(self, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        """The cells of tokens that the subject emitted."""
        if self.cell is None:
            return tokens
        return np.where(tokens < 0, tokens, self.cell[np.maximum(tokens, 0)]).astype(np.int32)

    def cut(self, gamma: int, lanes: int) -> "Case":
        """The first lanes and positions alone: a smaller witness."""
        return replace(self, p=self.p[:lanes, : gamma + 1], q=self.q[:lanes, :gamma])


def turn(call: Call, lanes: int) -> Call:
    """Which lane a call of one lane takes: each twice in a row."""
    return call // 2 % lanes


def step(context: NDArray[np.int64] | int, token: NDArray[np.int64] | int, contexts: int) -> NDArray[np.int64] | int:
    """The context after one more token."""
    return (2 * context + token + 1) % contexts


def case(name: str, p: Rows, q: Rows, noise: Noise = "uniform") -> Case:
    """Rows of single ids."""
    return Case(name, _held(p), _held(q), noise)


def rolled(row: list[float] | Rows, lanes: int, positions: int, by_lane: int, by_position: int) -> Rows:
    """One row at every site, rotated by its lane and its position: [lanes, positions, 1, V]."""
    row = np.asarray(row, dtype=float)
    table = [[np.roll(row, lane * by_lane + i * by_position) for i in range(positions)] for lane in range(lanes)]
    return np.asarray(table)[:, :, None, :]


def same(row: list[float] | Rows, lanes: int, positions: int) -> Rows:
    return rolled(row, lanes, positions, 0, 0)


def by_cells(name: str, p: Rows, q: Rows, cell: Ids) -> Case:
    """An input from the mass of one id of each cell."""
    sizes = np.bincount(cell)
    return Case(name, _held(p, sizes), _held(q, sizes), cell=cell)


def _held(each: Rows, sizes: Ids | int = 1) -> Rows:
    """The float32 values of every id, renormalised in float64: the null of the audit."""
    each = each / (each * sizes).sum(-1, keepdims=True)
    masses = each.astype(np.float32).astype(np.float64) * sizes
    return normalised(masses, masses)
