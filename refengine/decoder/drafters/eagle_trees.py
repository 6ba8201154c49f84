"""How an EAGLE drafter grows its candidates: a drawn chain, a dynamic tree (EAGLE-2), a static tree (EAGLE-1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from refengine.decoder.networks.feature_recurrence import Draft
from refengine.decoder.networks.layers import wide
from refengine.decoder.protocols import Tokens, Turn
from refengine.decoder.rows import DrawnChain, point_block
from refengine.engine.block import ROOT, Block
from refengine.exact.chance import Site


@dataclass(frozen=True)
class Chain:
    """`length` tokens, each drawn from its own row: for `leviathan` and `block`.

    Engines that draft by argmax at any temperature (vLLM) report no q; they are the case of a point mass.
    """

    length: int

    def __call__(self, draft: Draft, turn: Turn) -> Block:
        chain = DrawnChain(turn)
        for depth in range(self.length):
            if not chain.draw(wide(draft.grow((chain.newest,), (depth - 1,))[0] if depth else draft.first)):
                break
        return chain.block()


@dataclass(frozen=True)
class DynamicTree:
    """EAGLE-2's tree: grow the `top_k` likeliest nodes of each level by `top_k` children, keep the `total` likeliest.

    A function of the prefix at any policy (scores are the draft's own log-probabilities): nothing is drawn, and
    `point_mass` judges it. depth counts the levels that are grown after the first, so a path has up to depth + 1 nodes.
    Ties go to the node that was there first, a parent before its children, so that what is kept is always a tree. (The
    released code keeps whichever of a tied parent and child its top-k names, and may hang the child onto another node.)
    """

    total: int = 59
    depth: int = 7
    top_k: int = 10

    def __call__(self, draft: Draft, turn: Turn) -> Block:
        pool = Pool([], [], wide(draft.first).new_empty(0))
        beam = pool.add(wide(draft.first)[None], [ROOT], self.top_k)
        rows = {ROOT: 0}  # node of the pool -> its row of the draft
        for _ in range(self.depth):
            beam = [beam[i] for i in likeliest(pool.scores[beam], self.top_k)]
            logits = draft.grow([pool.tokens[j] for j in beam], [rows[pool.parents[j]] for j in beam])
            rows |= {j: len(rows) + i for i, j in enumerate(beam)}
            beam = pool.add(wide(logits), beam, self.top_k)
        kept = sorted(likeliest(pool.scores, self.total))
        places = {ROOT: ROOT} | {j: place for place, j in enumerate(kept)}
        parents = tuple(places[pool.parents[j]] for j in kept)
        return point_block(tuple(pool.tokens[j] for j in kept), parents, draft.device)


@dataclass
class Pool:
    """Every node that was ever scored, in the order of its appearance; scores are log-probabilities of whole paths."""

    tokens: list[int]
    parents: list[int]
    scores: Tensor

    def add(self, logits: Tensor, parents: Sequence[int], top_k: int) -> list[int]:
        """The top_k likeliest children of each parent; returns their numbers."""
        first = len(self.tokens)
        for row, parent in zip(logits.log_softmax(-1), parents, strict=True):
            children = [x for x in likeliest(row, top_k) if row[x] > float("-inf")]
            above = 0.0 if parent == ROOT else self.scores[parent]
            self.tokens += children
            self.parents += [parent] * len(children)
            self.scores = torch.cat((self.scores, row[children] + above))
        return list(range(first, len(self.tokens)))


@dataclass(frozen=True)
class StaticTree:
    """EAGLE-1's tree of fixed shape: `paths` of ranks, (0, 2) being the third child of the first.

    drawn   children are drawn without replacement from their parent's row: for `without_replacement`. A row that has
            less support than children leaves the last of them out. False: the likeliest tokens of the draft vocabulary,
            for `point_mass`
    """

    paths: tuple[tuple[int, ...], ...]
    drawn: bool = True

    def __post_init__(self) -> None:
        for path in self.paths:
            before = (*path[:-1], path[-1] - 1) if path[-1] else path[:-1]
            if before and before not in self.paths:
                raise ValueError(
                    f"the tree has a node {path} without its {'sibling' if path[-1] else 'parent'} {before}"
                )

    def __call__(self, draft: Draft, turn: Turn) -> Block:
        places: dict[tuple[int, ...], int] = {(): ROOT}
        rows: dict[tuple[int, ...], int] = {(): 0}
        logits: dict[tuple[int, ...], Tensor] = {(): wide(draft.first)}
        grown = Grown([], [], [], [], [()])
        for depth in range(max(map(len, self.paths))):
            parents = sorted({path[:-1] for path in self.paths if len(path) == depth + 1 and path[:-1] in places})
            if depth and parents:
                new = draft.grow([grown.tokens[places[x]] for x in parents], [rows[x[:-1]] for x in parents])
                rows |= {x: len(rows) + i for i, x in enumerate(parents)}
                logits |= dict(zip(parents, wide(new), strict=True))
            for parent in parents:
                count = sum(path[:-1] == parent and len(path) == depth + 1 for path in self.paths)
                # A row of which the policy leaves nothing has no children.
                q = turn.row(logits[parent], grown.texts[places[parent] + 1])
                for rank, token in enumerate(self._children(turn, q, logits[parent], depth, count, len(grown.tokens))):
                    places[*parent, rank] = len(grown.tokens)
                    grown.add(token, places[parent], q, ("draft", depth, len(grown.tokens)))
        tokens, above = tuple(grown.tokens), tuple(grown.parents)
        block = point_block(tokens, above, draft.device)
        if not self.drawn:
            return block
        q = torch.stack(grown.q) if grown.q else logits[()].new_empty(0, len(logits[()]))
        return Block(block.tokens, block.parents, q[None], tuple(grown.sites))

    def _children(self, turn: Turn, q: Tensor, logits: Tensor, depth: int, count: int, node: int) -> list[int]:
        if not self.drawn:
            return [x for x in likeliest(logits, count) if logits[x] > float("-inf")]
        left, drawn = q.clone(), list[int]()
        while len(drawn) < count and float(left.sum()) > 0:
            drawn.append(turn.draw(left, ("draft", depth, node + len(drawn))))
            left[drawn[-1]] = 0.0
        return drawn


@dataclass
class Grown:
    """The nodes of a tree so far; texts holds the tokens on the way to each, the root's first."""

    tokens: list[int]
    parents: list[int]
    q: list[Tensor]
    sites: list[Site]
    texts: list[Tokens]

    def add(self, token: int, parent: int, q: Tensor, site: Site) -> None:
        self.texts.append((*self.texts[parent + 1], token))
        self.tokens.append(token)
        self.parents.append(parent)
        self.q.append(q)
        self.sites.append(site)


def likeliest(scores: Tensor, count: int) -> list[int]:
    """The places of the highest scores, highest first, ties to the first place."""
    places: list[int] = scores.argsort(descending=True, stable=True)[:count].tolist()
    return places


# The tree of EAGLE-1's release, `mc_sim_7b_63`: 25 nodes, 5 levels.
MC_SIM_7B_63: tuple[tuple[int, ...], ...] = (
    *((0,), (1,), (2,), (3,)),
    *((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)),
    *((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 1), (0, 2, 0), (0, 2, 1), (1, 0, 0)),
    *((0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 2)),
    *((0, 0, 0, 0, 0), (0, 0, 0, 0, 1)),
)
