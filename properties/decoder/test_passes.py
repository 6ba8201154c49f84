"""A text may be run in any passes: what a row says does not depend on how many rows stand beside it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.decoder.test_state import KEPT
from refengine.decoder.loop import begin
from refengine.decoder.rows import chain_rows

TEXTS = st.lists(st.integers(0, 4), min_size=1, max_size=14).map(tuple)


@pytest.mark.parametrize("kind", KEPT)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(text=TEXTS, data=st.data())
@torch.inference_mode()
def test_a_row_says_the_same_in_any_pass(kind: str, text: tuple[int, ...], data: st.DataObject) -> None:
    """Kills a mask, a window or a position that a pass of one row, of two, or of a whole text is run without."""
    target = KEPT[kind]()
    whole = begin(target, text, ()).logits
    target.reset()
    start = 0
    while start < len(text):
        count = data.draw(st.integers(1, min(4, len(text) - start)))
        passed = target.run(chain_rows(text[start : start + count], start, target.device))
        target.keep(range(count))
        assert float((passed.logits - whole[start : start + count]).abs().max()) < 1e-10
        start += count
