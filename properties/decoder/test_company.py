"""Requests of every kind of drafter in one batched loop, bit for bit; and what is planted there is found."""

import random
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.helpers.histories import CODE, DEFECTS, Split
from refengine.decoder.targets import together
from refengine.selfcheck.drafters.company import MODES, SEATS, SHARES, STEP, Company, drawn, shortest
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.edit import Edit
from refengine.source_edits.loader import edited_module

pytestmark = pytest.mark.on_record

DTYPES = [torch.float32, torch.bfloat16]
KINDS = ["dspark", "eagle2", "medusa"]  # a block that is drawn, a tree that is grown, heads on a static tree
SLOTS, REQUESTS = 32, range(12)
EVENTS = st.tuples(st.sampled_from(list(SHARES)), st.integers(0, SEATS - 1), st.sampled_from(REQUESTS))


@pytest.mark.parametrize("drafter", [*KINDS, "lookahead", "gemma4_assistant", "qwen_mtp"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_and_tokens_do_not_depend_on_company(drafter: str, dtype: torch.dtype) -> None:
    """Kills a row, a tapped hidden state or a token that feels a neighbour, a rollback, a branch or a recomputation."""
    mode = list(MODES)[(len(drafter) + DTYPES.index(dtype)) % len(MODES)]
    company, source = Company(ROWS[drafter], dtype, SLOTS, mode=mode), random.Random(5)
    assert company.play(drawn(source, REQUESTS)) == []
    assert company.counted["rows compared"] > 100
    assert len(company.histories) > 3


COMPANY: dict[torch.dtype, Company] = {}


@settings(max_examples=8, deadline=None, derandomize=True)
@given(script=st.lists(EVENTS, max_size=30))
def test_any_script_is_a_history(script: list[Any]) -> None:
    """Kills an order of events that no random script has; Hypothesis shrinks what it finds."""
    company = COMPANY.setdefault(torch.float32, Company(ROWS["dspark"], torch.float32, SLOTS, mode="agreement"))
    assert company.play(script) == []


def test_requests_share_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison in which every request is run by itself, because what listens hides the target's kind."""
    shared = []
    real = together.in_lanes
    monkeypatch.setattr(together, "in_lanes", lambda asks, taps: shared.append(len(asks)) or real(asks, taps))  # type: ignore[func-returns-value]
    company = Company(ROWS["dspark"], torch.float32, SLOTS)
    company.play([("join", seat, seat) for seat in range(3)] + [STEP, STEP])
    assert shared[0] == 3


# --- what is planted in the target ----------------------------------------------------------------------------------

HOSTILE = Edit(CODE, "zeros = tuple((torch.zeros_like(k[:1])", "zeros = tuple((torch.full_like(k[:1], 3.0)")
PLANTED: dict[str, tuple[Edit, ...]] = {
    "kernel shape": (DEFECTS["kernel shape"],),
    "position off by one": (DEFECTS["position off by one"],),
    "a padded place is seen, its values hostile": (
        HOSTILE,
        Edit(CODE, "sees = numbers > 0\n", "sees = (numbers > 0) | (torch.arange(target.slots) == 29)\n"),
    ),
    "one stale row after a rollback": (
        Edit(
            CODE,
            "        self.past = keep(self.past, index)\n",
            "        if 0 < len(rows) < len(self.places):\n"
            "            index[-1] = self.kept + len(self.places) - 1\n"
            "        self.past = keep(self.past, index)\n",
        ),
    ),
    "a mate's oldest row is read": (
        Edit(CODE, "(path < old, path + start,", "(path < old, path + start - ((path == 0) & (start > 1)).long(),"),
    ),
    "hidden states of another row": (
        Edit(CODE, "{j: hidden[j][here] for j in taps}", "{j: hidden[j][here].roll(1, 0) for j in taps}"),
    ),
}
PLACES = [(drafter, torch.float32) for drafter in KINDS] + [("dspark", torch.bfloat16)]


def found(code: Any, drafter: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether something is otherwise than alone, in the batched loop on this target."""
    monkeypatch.setattr(together, "BitwiseTarget", code.BitwiseTarget)
    monkeypatch.setattr(together, "in_lanes", code.in_lanes)
    company, source = Company(ROWS[drafter], dtype, SLOTS, code=code), random.Random(6)
    return any(company.play(drawn(source, REQUESTS, 40)) for _ in range(3))


# A CPU may have one kernel of bfloat16 for every number of rows: sums of 32 to 6144 had the same bits in all of them.
UNSEEN = {("dspark", torch.bfloat16, "kernel shape")}


@pytest.mark.parametrize(
    ("drafter", "dtype", "name"), [(*p, n) for p in PLACES for n in PLANTED if (*p, n) not in UNSEEN], ids=str
)
def test_what_is_planted_in_the_target_is_found(
    drafter: str, dtype: torch.dtype, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills a comparison that cannot fail, for a drafter of each kind."""
    code: ModuleType = edited_module(CODE, PLANTED[name])
    assert found(code, drafter, dtype, monkeypatch)


@pytest.mark.parametrize(("drafter", "dtype"), PLACES, ids=str)
def test_a_split_reduction_is_found(drafter: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a comparison within a tolerance: one sum of a layer in two halves, in passes with company."""
    code: Any = edited_module(CODE, [])
    called = code.called

    def halved(model: Any, tokens: Any, *rest: Any) -> Any:
        with Split(64) if int((tokens != 0).sum()) > 3 else torch.no_grad():
            return called(model, tokens, *rest)

    monkeypatch.setattr(code, "called", halved)
    assert found(code, drafter, dtype, monkeypatch)


def test_hostile_values_in_padded_places_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a mask that only holds because what it hides is zero."""
    assert not found(edited_module(CODE, [HOSTILE]), "dspark", torch.float32, monkeypatch)


def test_what_fails_is_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a failure of a thousand events that nobody can read: two requests and two steps are left of it."""
    code: Any = edited_module(CODE, PLANTED["a mate's oldest row is read"])
    monkeypatch.setattr(together, "BitwiseTarget", code.BitwiseTarget)
    monkeypatch.setattr(together, "in_lanes", code.in_lanes)
    company = Company(ROWS["dspark"], torch.float32, SLOTS, code=code)
    script = drawn(random.Random(6), REQUESTS, 40)
    assert company.play(script)
    short = shortest(company.fails, script)
    assert company.play(short)
    assert len(short) <= 4
    assert sum(what == "join" for what, *_ in short) == 2
