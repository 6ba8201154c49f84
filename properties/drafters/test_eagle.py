"""EAGLE drafters on the tiny target: caches after any accepts and rejects, and the rows that they report."""

from typing import Any

import pytest

from properties.helpers.checkpoints.eagle_example import SAMPLED, TARGET, loaded
from refengine.decoder.drafters.eagle_trees import Chain, StaticTree
from refengine.decoder.loop import begin, nodes
from refengine.decoder.protocols import Turn
from refengine.engine.block import Block
from refengine.engine.coins import Branching
from refengine.engine.policy import pipeline, temperature, top_k
from refengine.exact.chance import Chance, runs


@pytest.mark.parametrize("name", ["eagle1", "eagle3_deepspec"])
@pytest.mark.parametrize("policy", [SAMPLED, pipeline(temperature(0.7), top_k(2))], ids=["whole", "top-2"])
def test_reported_rows_are_the_law_of_the_draws(name: str, policy: Any) -> None:
    """Kills a q that is not what its token was drawn from, siblings drawn with replacement, a reused coin."""
    drafter = loaded(name, StaticTree(((0,), (1,), (0, 0))) if name == "eagle1" else Chain(2))
    passed = begin(TARGET, (4, 3, 4), drafter.taps)
    drafter.start((4, 3, 4), passed)
    total = 0.0

    def propose(chance: Chance) -> tuple[Block, float]:
        block = drafter.propose(Turn((4, 3, 4), (4, 3, 4, 0), policy, Branching(chance)))
        assert block.q is not None
        reported, taken = 1.0, dict[int, list[int]]()
        for q, token, parent in zip(block.q[0], *nodes(block), strict=True):
            siblings = taken.setdefault(parent, [])
            reported *= float(q[token] / (1 - q[siblings].sum()))
            siblings.append(token)
        return block, reported

    for (block, reported), probability, _ in runs(propose):
        assert abs(reported - float(probability)) < 1e-13, nodes(block)
        assert len(set(block.sites)) == len(block.sites)
        total += float(probability)
    assert abs(total - 1) < 1e-12
