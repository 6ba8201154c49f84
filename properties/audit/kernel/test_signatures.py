"""What counts as the tokens of a lane, and what is said of an answer that does not."""

from typing import Any

import numpy as np
import pytest
import torch

from refengine.audit.kernel.child.signatures import MAX_ENTRIES, ContractBroken, emitted


@pytest.mark.parametrize(
    "answer",
    [
        [1, 2],
        (1, 2),
        torch.tensor([1, 2, -1]),
        np.array([[1, 2]], dtype=np.uint8),
        [torch.tensor(1), np.int16(2)],
        [torch.tensor([1, 2])],
        iter([1.0, 2.0]),
    ],
)
def test_tokens_come_in_any_container(answer: Any) -> None:
    """Kills a correct function accused for the type of what it returns."""
    assert emitted(answer, gamma=2, vocabulary=4) == [1, 2]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "the answer is None"),
        (3, "the answer is a int"),
        ("12", "the answer is a str"),
        ([None], "entry 0 of the answer is None, not a token"),
        ([{}], "entry 0 of the answer is {}, not a token"),
        ([1, "2"], "entry 1 of the answer is '2', not a token"),
        ([1j], "not a token"),
        ([[1], [2]], "entry 0 of the answer is [1], not a token"),
        ([float("nan")], "NaN, not an integer"),
        ([float("inf")], "inf, not an integer"),
        ([0.5], "0.5, not an integer"),
        ([10**400], "entry 0 of the answer has more than 64 bits"),
        ([0] * (MAX_ENTRIES + 1), "more than 65536 entries"),
        (torch.empty(1 << 40, device="meta"), "the meta device"),
        (torch.eye(2).to_sparse(), "the layout sparse_coo"),
        ([], "0 tokens were emitted"),
        ([1, 1, 1, 1], "4 tokens were emitted"),
        ([1, -1, 2], "a token follows padding"),
        ([4], "token 4 lies outside"),
    ],
)
def test_any_other_answer_breaks_the_contract(answer: Any, says: str) -> None:
    """Kills an answer of a kind that nobody thought of ends the audit as an error of our own."""
    with pytest.raises(ContractBroken) as caught:
        emitted(answer, gamma=2, vocabulary=4)
    assert says in str(caught.value)
