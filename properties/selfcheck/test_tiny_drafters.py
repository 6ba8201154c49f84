"""What every drafter on a tiny fixture passes: incremental = from scratch, whatever is accepted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.helpers.checkpoints.eagle_example import PLANS, SAMPLED, TARGET, loaded
from properties.helpers.coins import COINS
from refengine.decoder.loop import Session
from refengine.engine.rules.leviathan import leviathan
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.cells import CELLS, SHORT, session
from refengine.selfcheck.drafters.laws.exact_law import off_scratch
from refengine.selfcheck.drafters.table import ROWS

pytestmark = pytest.mark.on_record

MIXED = {CELLS[name].drafter: CELLS[name] for name in SHORT}


def play_of(name: str) -> Session:
    """The tiny drafter; or, of those with a plan, one that drafts deeper than their cells can enumerate."""
    if name in ROWS:
        return session(MIXED[name])
    return Session(TARGET, loaded(name.removeprefix("deep "), PLANS[name.removeprefix("deep ")]), leviathan, SAMPLED, 0)


@pytest.mark.parametrize("name", [*sorted(ROWS), *(f"deep {name}" for name in sorted(PLANS))])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    pattern=st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=3), st.integers(0, 6)), min_size=1, max_size=5),
)
def test_state_after_any_pattern_is_that_of_a_recompute(
    name: str, prompt: list[int], pattern: list[tuple[list[int], int]]
) -> None:
    """Kills a cache that keeps a rejected row, misses an accepted one, or takes the rows of another branch."""
    play = play_of(name)
    play.max_new_tokens, play.stop = 10**6, type(play.stop)()
    play.begin(tuple(prompt), COINS)
    for turns, token in pattern:
        play.rule = along(tuple(turns), token)
        play.play(COINS)
        assert off_scratch(play) == ""
