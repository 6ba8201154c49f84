"""EAGLE's trees: the dynamic one against its definition, the static one, and what cannot be drafted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from properties.helpers.checkpoints.eagle_example import SAMPLED, TARGET, loaded
from properties.helpers.coins import COINS
from refengine.decoder.drafters.eagle_trees import MC_SIM_7B_63, DynamicTree, StaticTree
from refengine.decoder.loop import begin, nodes
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.protocols import Tokens, Turn
from refengine.engine.block import ROOT, Block


def paths(block: Block) -> dict[Tokens, int]:
    """Every node by the tokens on its path."""
    texts: list[Tokens] = [()]
    for token, parent in zip(*nodes(block), strict=True):
        texts.append((*texts[parent + 1], token))
    return {text: node for node, text in enumerate(texts[1:])}


def by_definition(drafter: FeatureRecurrence, anchor: int, total: int, depth: int, top_k: int) -> set[Tokens]:
    """EAGLE-2's tree from its definition: every path's score from a draft of that path alone."""

    def row(path: Tokens) -> Tensor:
        draft = Draft(drafter.network, drafter.cache, drafter.length, anchor, drafter.feature)
        logits = draft.first
        for place, token in enumerate(path):
            logits = draft.grow((token,), (place,))[0]
        return logits.log_softmax(-1)

    def children(path: Tokens, score: float) -> dict[Tokens, float]:
        best = row(path).topk(top_k)
        return {(*path, x): score + above for x, above in zip(best.indices.tolist(), best.values.tolist(), strict=True)}

    level = children((), 0.0)
    pool = dict(level)
    for _ in range(depth):
        beam = sorted(level, key=lambda path: -level[path])[:top_k]
        level = {path: score for one in beam for path, score in children(one, pool[one]).items()}
        pool |= level
    return set(sorted(pool, key=lambda path: -pool[path])[:total])


@pytest.mark.parametrize("name", ["eagle1", "eagle3"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(prompt=st.lists(st.integers(0, 6), min_size=2, max_size=6), total=st.integers(1, 14), depth=st.integers(0, 3))
def test_the_dynamic_tree_is_its_definition(name: str, prompt: list[int], total: int, depth: int) -> None:
    """Kills a branch that sees its siblings, a wrong position within the tree, a score of the last token alone."""
    drafter = loaded(name, DynamicTree(total, depth, 3))
    tokens = tuple(prompt)
    drafter.start(tokens[:-1], begin(TARGET, tokens[:-1], drafter.taps))
    block = drafter.propose(Turn(tokens, tokens, SAMPLED, COINS))
    assert block.q is None
    assert set(paths(block)) == by_definition(drafter, tokens[-1], total, depth, 3)


@dataclass
class Tabled:
    """A draft whose logits after a path are read from a table: few values, so that ties are everywhere."""

    table: list[list[float]]
    paths: list[Tokens] = field(default_factory=lambda: [()])
    device = torch.device("cpu")

    def logits(self, path: Tokens) -> Tensor:
        return torch.tensor(self.table[sum((x + 1) * 3**i for i, x in enumerate(path)) % len(self.table)]).double()

    @property
    def first(self) -> Tensor:
        return self.logits(())

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        self.paths += [(*self.paths[parent], token) for token, parent in zip(tokens, parents, strict=True)]
        return torch.stack([self.logits(path) for path in self.paths[len(self.paths) - len(tokens) :]])


def ranked(draft: Tabled, total: int, depth: int, top_k: int) -> list[Tokens]:
    """The dynamic tree with its ties as stated: to the node that was there first, a parent before its children."""
    scores: dict[Tokens, float] = {}
    beam: list[Tokens] = [()]
    for _ in range(depth + 1):
        level: list[Tokens] = []
        for path in beam:
            row = draft.logits(path).log_softmax(-1).tolist()
            best = sorted((x for x in range(len(row)) if row[x] > -math.inf), key=lambda x: (-row[x], x))[:top_k]
            scores |= {(*path, x): scores.get(path, 0.0) + row[x] for x in best}
            level += [(*path, x) for x in best]
        beam = sorted(level, key=lambda path: -scores[path])[:top_k]
    first = {path: place for place, path in enumerate(scores)}
    return sorted(sorted(scores, key=lambda path: (-scores[path], first[path]))[:total], key=lambda path: first[path])


TIED = st.integers(2, 5).flatmap(  # tables of a vocabulary, whose rows draft one token at least
    lambda words: st.lists(
        st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, -math.inf]), min_size=words, max_size=words).filter(
            lambda row: max(row) > -math.inf
        ),
        min_size=1,
        max_size=4,
    )
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    table=TIED,
    total=st.integers(1, 40),
    depth=st.integers(0, 4),
    top_k=st.integers(1, 4),
)
def test_ties_go_to_the_node_that_was_there_first(table: list[list[float]], total: int, depth: int, top_k: int) -> None:
    """Kills a sort that is not stable, a child that is kept without its parent, and one that is hung onto another."""
    draft: Any = Tabled(table)
    block = DynamicTree(total, depth, top_k)(draft, Turn((0,), (0,), SAMPLED, COINS))
    assert list(paths(block)) == ranked(draft, total, depth, top_k)


def by_rank(draft: Tabled, tree: Sequence[Tokens]) -> set[Tokens]:
    """The undrawn static tree: at every node the token of its rank, of equal ones the lowest first."""
    texts: dict[Tokens, Tokens] = {(): ()}
    for ranks in sorted(tree, key=len):
        if (above := texts.get(ranks[:-1])) is not None:
            row = draft.logits(above).tolist()
            best = sorted((x for x in range(len(row)) if row[x] > -math.inf), key=lambda x: (-row[x], x))
            texts |= {ranks: (*above, best[ranks[-1]])} if ranks[-1] < len(best) else {}
    return set(texts.values()) - {()}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(table=TIED, depths=st.integers(1, 5))
def test_an_undrawn_tree_takes_the_lowest_of_equal_tokens(table: list[list[float]], depths: int) -> None:
    """Kills a sort that is not stable, a rank that is counted from another parent's row, a token that no row allows."""
    draft: Any = Tabled(table)
    tree = tuple(path for path in MC_SIM_7B_63 if len(path) <= depths)
    block = StaticTree(tree, drawn=False)(draft, Turn((0,), (0,), SAMPLED, COINS))
    assert block.q is None
    assert set(paths(block)) == by_rank(draft, tree)


def test_a_tree_has_only_tokens_that_can_be_drafted() -> None:
    """Kills children of probability zero where a node asks for more than the draft vocabulary holds."""
    drafter = loaded("eagle3", DynamicTree(30, 1, 8))
    drafter.start((4, 3), begin(TARGET, (4, 3), drafter.taps))
    tokens, parents = nodes(drafter.propose(Turn((4, 3), (4, 3, 0), SAMPLED, COINS)))
    assert set(tokens) == {0, 2, 3, 4, 5, 6}
    assert sum(parent == ROOT for parent in parents) == 6


def test_static_trees_are_checked_and_the_released_one_is_whole() -> None:
    """Kills a tree with an orphan, and a third child where there is no second."""
    assert len(StaticTree(MC_SIM_7B_63).paths) == 25
    with pytest.raises(ValueError, match=r"\(0, 0\) without its parent \(0,\)"):
        StaticTree(((0, 0),))
    with pytest.raises(ValueError, match=r"\(2,\) without its sibling \(1,\)"):
        StaticTree(((0,), (2,)))
    drafter = loaded("eagle1", StaticTree(((0,), (1,), (1, 0)), drawn=False))
    drafter.start((4, 3), begin(TARGET, (4, 3), drafter.taps))
    block = drafter.propose(Turn((4, 3), (4, 3, 0), SAMPLED, COINS))
    assert block.q is None
    assert block.parents.tolist() == [[-1, -1, 1]]
