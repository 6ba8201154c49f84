"""The trees of Medusa: which are shipped, which is picked, and what a small vocabulary leaves of one."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.medusa import Medusa
from refengine.decoder.drafters.medusa_trees import TREES, ordered, tree_for
from refengine.decoder.protocols import Tokens, Turn
from refengine.decoder.rows import depth, point_block
from refengine.engine.policy import pipeline, temperature
from refengine.source_tree import FIXTURES


@cache
def released() -> Medusa:
    """In the released layout, with three heads."""
    drafter = load_drafter(FIXTURES / "heads" / "medusa", load_target(FIXTURES / "tiny" / "target", torch.float32))
    assert isinstance(drafter, Medusa)
    return drafter


def test_trees() -> None:
    """Kills a tree of the wrong size, an orphan that is drafted, and a tree picked by another rule than the name's."""
    assert len(TREES) == 9
    assert all(len(tree) == 63 for tree in TREES.values())
    with pytest.raises(ValueError, match=r"node \(1, 0\) of the tree has no parent"):
        ordered({(0,), (1, 0)})
    picked = {"lmsys/vicuna-13b-v1.3": "vicuna_13b_stage2", "HuggingFaceH4/zephyr-7b-beta": "zephyr_stage2"}
    assert {name: tree_for(name) for name in picked} == picked
    assert tree_for("mistral") == "mc_sim_7b_63"


def test_a_node_that_cannot_be_filled_is_left_out() -> None:
    """Kills a tree that asks a small vocabulary, or a file with few heads, for a candidate that is not there."""
    drafter = released()
    assert all(len(path) <= 3 and max(path) < 8 for path in drafter.tree)
    assert depth(point_block((0,) * len(drafter.tree), drafter.parents, torch.device("cpu"))) == 3


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0]), min_size=8, max_size=8), min_size=3, max_size=3
    ),
    name=st.sampled_from(sorted(TREES)),
)
def test_equal_candidates_go_to_the_lowest_token(rows: list[list[float]], name: str) -> None:
    """Kills a sort that is not stable, a candidate of another head's row, a node that hangs onto another parent."""
    loaded = released()
    drafter = Medusa(loaded.shape, dict(loaded.w.tensors), TREES[name])
    drafter.heads = lambda hidden: torch.tensor(rows)  # type: ignore[method-assign]
    block = drafter.propose(Turn((1,), (1,), pipeline(temperature(1.0)), COINS))
    texts: list[Tokens] = [()]
    for token, parent in zip(block.tokens[0].tolist(), block.parents[0].tolist(), strict=True):
        texts.append((*texts[parent + 1], token))
    best = [sorted(range(8), key=lambda x, row=row: (-row[x], x)) for row in rows]
    tree = [path for path in TREES[name] if len(path) <= 3 and max(path) < 8]
    assert set(texts[1:]) == {tuple(best[level][rank] for level, rank in enumerate(path)) for path in tree}
    assert len(texts) == len(tree) + 1
