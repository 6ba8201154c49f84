"""What every drafter on a tiny fixture passes: incremental = from scratch, whatever is accepted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refengine.engine.coins import Philox
from refengine.selfcheck.drafters.cells import CELLS, SHORT, session
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.exact_law import off_scratch
from refengine.selfcheck.drafters.table import ROWS

COINS = Philox(3, torch.tensor([0]))
MIXED = {CELLS[name].drafter: CELLS[name] for name in SHORT}


@pytest.mark.parametrize("name", sorted(ROWS))
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
        play.rule = along(tuple(turns), token)
        play.play(COINS)
        assert off_scratch(play) == ""
