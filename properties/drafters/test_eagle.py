"""EAGLE drafters on the tiny target: caches after any accepts and rejects, and the rows that they report."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.helpers.eagle_example import COINS, PLANS, SAMPLED, TARGET, loaded
from properties.helpers.forced import forced
from refengine.decoder.drafters.eagle_trees import Chain, StaticTree
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.protocols import Turn
from refengine.engine.block import Block
from refengine.engine.coins import Branching
from refengine.engine.policy import pipeline, temperature, top_k
from refengine.engine.rules.leviathan import leviathan
from refengine.exact.chance import Chance, runs
from refengine.selfcheck.drafters.exact_law import off_scratch

PARTS = {name: loaded(name, plan) for name, plan in PLANS.items()}


@pytest.mark.parametrize("name", sorted(PARTS))
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    pattern=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=4),
)
def test_state_after_any_pattern_is_that_of_a_recompute(
    name: str, prompt: list[int], pattern: list[tuple[int, int]]
) -> None:
    """Kills a draft's own row that stays, a feature of a rejected row, a pair of the wrong token or position."""
    session = Session(TARGET, PARTS[name], leviathan, SAMPLED, 10**6)
    session.begin(tuple(prompt), COINS)
    for kept, token in pattern:
        session.rule = forced(kept, token)
        session.play(COINS)
        assert off_scratch(session) == ""


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
