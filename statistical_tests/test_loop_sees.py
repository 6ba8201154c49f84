"""Negative controls of `test_loop.py`: defects planted in the running loop, and by which question they are seen.

A table of ones cannot tell a test that passes from one that cannot fail.
"""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

from refengine.decoder import loop
from refengine.decoder.loop import Session
from refengine.engine import policy
from refengine.engine.rules import leviathan
from refengine.selfcheck.drafters.laws.cells import CELLS, session
from refengine.selfcheck.drafters.planted_bugs import NO_CROP, Plant
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module
from statistical_tests.running_loop import serve
from statistical_tests.test_loop import examine

pytestmark = pytest.mark.stat

FEW = 10_000  # a tenth of what a drafter serves in `test_loop.py`
NO_ROLLBACK = Plant("target-no-crop", "rejected rows stay", "target", NO_CROP, "tokens")
ONCE_A_BLOCK = Edit(
    policy.__name__, "policy(row, prompt, prefix + path) for row", "policy(row, prompt, prefix) for row"
)
EMIT = 'coins.choose(left, ("emit", depth))'
USED_COIN = Edit(
    leviathan.__name__,
    f"    return emitted(block, kept, {EMIT})",
    '    used = coins.choose(left, ("draft", (depth - 1).clamp(min=0)))\n'
    f"    return emitted(block, kept, torch.where(refused, {EMIT}, used))",
)
LEANING = Edit(
    leviathan.__name__,
    f"    return emitted(block, kept, {EMIT})",
    "    moved = 0.01 * left.sum(1, keepdim=True) * refused[:, None]\n"
    "    rarest = left.where(left > 0, 2.0).argmin(1, keepdim=True)\n"
    "    left = left.scatter_add(1, left.argmax(1, keepdim=True), -moved).scatter_add(1, rarest, moved)\n"
    f"    return emitted(block, kept, {EMIT})",
)


def planted(drafter: str, plant: Plant | None = None) -> Session:
    return session(CELLS[f"{drafter}/{ROWS[drafter].rules[0]}/temperature-1"], plant)


def seen(drafter: str, play: Session, by_coin: bool = False) -> str:
    """What `test_loop.py` says of a loop, by frequencies or coin by coin too; its line is none of the table's."""
    with pytest.raises(AssertionError) as raised, redirect_stdout(StringIO()):
        examine(drafter, serve(drafter, FEW, play, by_coin=by_coin), FEW)
    return str(raised.value)


def test_a_cache_that_is_not_rolled_back_is_seen() -> None:
    """Kills a sample in which caches play no part."""
    assert seen("eagle3_deepspec", planted("eagle3_deepspec", NO_ROLLBACK)).startswith("tokens")


def test_a_policy_that_is_applied_once_for_a_block_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a sample under policies that look at no text."""
    monkeypatch.setattr(loop, "policy_rows", edited_module(policy.__name__, [ONCE_A_BLOCK]).rows)
    assert seen("eagle3_deepspec", planted("eagle3_deepspec")).startswith("tokens")


def test_a_bonus_token_drawn_with_a_used_coin_is_seen() -> None:
    """Kills a look-up that forgets which coin a question was put to."""
    play = planted("eagle3_deepspec")
    play.rule = edited_module(leviathan.__name__, [USED_COIN]).leviathan
    assert seen("eagle3_deepspec", play).startswith("tokens")


def test_a_correction_that_leans_by_a_hundredth_is_seen() -> None:
    """Kills a sample whose coins are thrown away: by frequencies alone a TV of 0.01 in the corrections of one drafter
    is worth 2 nats here, of which alpha asks for 22."""
    play = planted("eagle3_deepspec")
    play.rule = edited_module(leviathan.__name__, [LEANING]).leviathan
    assert seen("eagle3_deepspec", play, by_coin=True).startswith("by its coins, the round")


def test_a_request_that_feels_earlier_ones_is_seen() -> None:
    """Kills a look-up that covers for a state which outlives its request."""
    play = planted("ngram")
    drafter: Any = play.drafter
    start: Callable[..., None] = drafter.start

    def remembers(*given: Any) -> None:
        before = dict(drafter.table)
        start(*given)
        drafter.table.update(before)

    drafter.start = remembers
    assert seen("ngram", play).startswith("a request feels earlier ones")
