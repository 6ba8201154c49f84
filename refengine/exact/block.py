"""What passes between drafter, rule and loop: Block, Round, and the two callables Target and Drafter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from refengine.exact.chance import Chance, Site
from refengine.exact.row import Row

ROOT = -1  # the parent of a first candidate: the last committed token


@dataclass(frozen=True)
class Block:
    """Drafted candidates: a chain or a tree, parents before children, siblings in the order they were drafted.

    tokens[j]   token of node j
    parents[j]  its parent node, ROOT (-1) for a first candidate
    q[j]        the row that tokens[j] was drawn from *before any sibling was drawn*; None where nothing was drawn
                (a deterministic candidate is a point mass on itself)
    sites[j]    the site of that draw; None where nothing was drawn
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    q: tuple[Row | None, ...]
    sites: tuple[Site | None, ...]

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.parents) == len(self.q) == len(self.sites):
            raise ValueError("tokens, parents, q and sites of a block must have one entry per node")
        for node, parent in enumerate(self.parents):
            if not ROOT <= parent < node:
                raise ValueError(f"node {node} has parent {parent}: parents come before their children")

    def children(self, node: int) -> list[int]:
        """The candidates after `node`, in draft order."""
        return [j for j, parent in enumerate(self.parents) if parent == node]

    def path(self, node: int) -> tuple[int, ...]:
        """The tokens from the first candidate down to `node`; empty at ROOT."""
        return () if node == ROOT else (*self.path(self.parents[node]), self.tokens[node])

    def is_chain(self) -> bool:
        return self.parents == tuple(range(-1, len(self.tokens) - 1))


def chain(tokens: Sequence[int], q: Sequence[Row | None], sites: Sequence[Site | None]) -> Block:
    """A block in which each token follows the one before."""
    return Block(tuple(tokens), tuple(range(-1, len(tokens) - 1)), tuple(q), tuple(sites))


def drawn(block: Block, node: int) -> Row:
    """The row that a sampled node was drawn from; a rule that weighs p against q cannot judge a deterministic one."""
    q = block.q[node]
    if q is None:
        raise ValueError(f"node {node} was not drawn, so there is no q to weigh it against: use point_mass")
    return q


def check_chain(block: Block) -> None:
    """Refuse a tree where a rule is defined on chains only."""
    if not block.is_chain():
        raise ValueError(f"this rule judges chains only, and the block is a tree: parents {block.parents}")


def row_after(p: Sequence[Row], node: int) -> Row:
    """Rows are given root first: p[0] follows the committed tokens, p[j + 1] follows node j."""
    return p[node + 1]


@dataclass(frozen=True)
class Round:
    """What one verification emits.

    tokens  the accepted tokens, then exactly one token that the draft did not decide
    path    the accepted nodes, root first; len(path) == len(tokens) - 1
    """

    tokens: tuple[int, ...]
    path: tuple[int, ...]


class Drafter(Protocol):
    """Proposes candidates after a prefix. All its randomness comes from `chance`."""

    def __call__(self, prefix: tuple[int, ...], chance: Chance) -> Block: ...


# A target maps a prefix (prompt and everything after it) to its row, policy included.
Target: TypeAlias = Callable[[tuple[int, ...]], Row]
# A rule judges a block against the target's rows (root first).
Rule: TypeAlias = Callable[[Sequence[Row], Block, Chance], Round]


def target_rows(target: Target, prefix: tuple[int, ...], block: Block) -> list[Row]:
    """The target's rows that judge a block, root first."""
    return [target(prefix + block.path(node)) for node in range(-1, len(block.tokens))]
