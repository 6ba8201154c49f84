"""What every drafter on a tiny fixture passes: incremental = from scratch, whatever is accepted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from refengine.decoder.cells import CELLS, SHORT, session
from refengine.decoder.law import difference
from refengine.decoder.loop import nodes
from refengine.decoder.tiny import TINY
from refengine.engine.block import ROOT, Block, Round
from refengine.engine.coins import Coins, Philox

COINS = Philox(3, torch.tensor([0]))
MIXED = {CELLS[name].drafter: CELLS[name] for name in SHORT}


def along(turns: list[int], token: int) -> object:
    """A rule that accepts a path whatever p says, child number `turns[d]` at depth d, and then emits `token`."""

    def rule(p: Tensor, block: Block, coins: Coins) -> Round:
        tokens, parents = nodes(block)
        path: list[int] = []
        for turn in turns:
            children = [node for node, parent in enumerate(parents) if parent == (path[-1] if path else ROOT)]
            if not children:
                break
            path.append(children[turn % len(children)])
        emitted = torch.tensor([[*(tokens[node] for node in path), token]])
        return Round(emitted, torch.tensor(path, dtype=torch.long)[None], torch.tensor([len(path) + 1]))

    return rule


@pytest.mark.parametrize("name", sorted(TINY))
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    pattern=st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=3), st.integers(0, 6)), min_size=1, max_size=5),
)
def test_state_after_any_pattern_is_that_of_a_recompute(
    name: str, prompt: list[int], pattern: list[tuple[list[int], int]]
) -> None:
    """Kills a cache that keeps a rejected row, misses an accepted one, or takes the rows of another branch."""
    play = session(MIXED[name])
    play.max_new_tokens, play.stop = 10**6, type(play.stop)()
    play.begin(tuple(prompt), COINS)
    for turns, token in pattern:
        play.rule = along(turns, token)  # type: ignore[assignment]
        play.play(COINS)
        state, out = play.state(), play.out
        play.rebuild(tuple(prompt), out)
        assert difference(state, play.state()) == ""
        play.restore(tuple(prompt), out, state)
