"""The protocol of speculation, visited whole; published errors found by their shortest schedules; logs held to it."""

import json
import re
from pathlib import Path

import pytest

from proofs.protocol.check import check, told
from proofs.protocol.errors import ERRORS, Error
from proofs.protocol.log import replay
from proofs.protocol.model import FIELDS, Sizes, first, steps
from refengine.errors import BadInput
from refengine.source_tree import ROOT

BY_NAME = {error.name: error for error in ERRORS}
STATES = {False: 27016, True: 180269}  # by `ahead`
ALONE = Sizes((1,), (4,))
# What breaks it, and an error that nothing else shows.
ALONE_SEEN = {
    "belief": "refused drafts stay computed",
    "inputs": "placeholders outlive a preemption",
    "slots": "the worker starts where all drafts would have been kept",
    "end": "a block of tokens overshoots the limit",
    "blind": "the budget drops drafts for what they are",
}


@pytest.mark.long
@pytest.mark.parametrize("ahead", [False, True])
def test_the_honest_protocol_holds_in_every_state(ahead: bool) -> None:
    """Kills an invariant that a right engine breaks, a state without a way on, and a model that became smaller."""
    found = check(Sizes(ahead=ahead))
    print(f"{found.states} states")
    assert (found.broken, found.schedule, found.stuck) == ("", [], 0)
    assert found.states == STATES[ahead]
    assert found.ends


@pytest.mark.parametrize("name", BY_NAME)
def test_every_published_error_is_found_with_a_schedule(name: str) -> None:
    """Kills a model in which the error cannot show, and an edit of a line that is no more."""
    error = BY_NAME[name]
    found = check(Sizes(ahead=error.ahead), error.model())
    assert found.broken
    assert found.schedule[-1].startswith(found.broken)
    assert found.schedule[0].startswith("admit request")
    assert len(found.schedule) <= 15


@pytest.mark.parametrize("invariant", ALONE_SEEN)
def test_no_invariant_is_idle(invariant: str) -> None:
    """Kills an invariant that finds nothing which the others do not find."""
    error = BY_NAME[ALONE_SEEN[invariant]]
    sizes = ALONE._replace(ahead=error.ahead)
    assert check(sizes, error.model()).broken == invariant
    assert check(sizes, error.model(), {invariant}).broken == ""


def test_a_line_that_is_gone_is_said() -> None:
    """Kills an error whose edit has no effect."""
    with pytest.raises(ValueError, match="stands 0 times"):
        Error("gone", "", "no such line", "").model()


EVENTS = (
    ("admit", [{"request": 0, "cached": 0}]),
    ("schedule", [{"request": 0, "start": 0, "fresh": 1, "drafts": 0}]),
    ("schedule", [{"request": 0, "start": 1, "fresh": 1, "drafts": 2}]),
    ("execute", [{"request": 0, "kept": 0}]),
    ("execute", [{"request": 0, "kept": 1}]),
    ("deliver", [{"request": 0, "known": 2}]),
    ("schedule", [{"request": 0, "start": 4, "fresh": 1, "drafts": 2}]),
    ("deliver", [{"request": 0, "known": 4}]),
    ("execute", [{"request": 0, "kept": 0}]),
    ("deliver", [{"request": 0, "known": 4}]),
)


def log(file: Path, events: list[tuple[str, list[dict[str, int]]]], **sizes: object) -> Path:
    head = {"prompts": [1], "lengths": [4], "ahead": True} | sizes
    lines = [head, *({"event": word, "rows": rows} for word, rows in events)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_log_of_the_protocol_is_allowed(tmp_path: Path) -> None:
    """Kills a replay that settles what a log leaves open too early."""
    assert replay(log(tmp_path / "log", list(EVENTS))) == (len(EVENTS), None)
    bare = [(word, [{"request": 0}]) for word, _ in EVENTS]
    assert replay(log(tmp_path / "log", bare)) == (len(EVENTS), None)


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (2, {"drafts": 3}),  # more than there are
        (4, {"kept": 3}),
        (6, {"start": 3}),  # as if the refusal were known
        (7, {"known": 3}),  # a token that was kept is lost
    ],
)
def test_the_first_event_that_is_not_allowed_is_named(number: int, changed: dict[str, int], tmp_path: Path) -> None:
    """Kills a replay that goes on with any state, and one that names a later event."""
    events = [(word, [dict(rows[0])]) for word, rows in EVENTS]
    events[number][1][0].update(changed)
    allowed, refused = replay(log(tmp_path / "log", events))
    assert allowed == number
    assert refused is not None
    assert refused.line == number + 2
    assert refused.allowed[0].startswith(EVENTS[number][0])


def test_the_log_of_the_page_is_allowed(tmp_path: Path) -> None:
    """Kills an example that is no log (docs/serving.md)."""
    (page,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "serving.md").read_text(), re.S)
    (tmp_path / "log").write_text(page)
    assert replay(tmp_path / "log") == (page.count("\n") - 1, None)


def test_an_engine_that_waits_may_not_schedule_ahead(tmp_path: Path) -> None:
    """The log of vllm-project/vllm #52071. Kills a replay that takes the sizes of another protocol."""
    allowed, refused = replay(log(tmp_path / "log", list(EVENTS), ahead=False))
    assert refused is not None
    assert (allowed, json.loads(refused.event)["event"]) == (2, "schedule")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("{}\n", "does not say the sizes"),
        ('{"prompts": [4], "lengths": [4]}\n', "a length above it"),
        ('{"prompts": [1], "lengths": [4]}\n{"event": "sleep", "rows": []}\n', "line 2 has no event"),
        ('{"prompts": [1], "lengths": [4]}\n{"event": "admit", "rows": [{"start": 1}]}\n', "a row of admit has"),
        ('{"prompts": [1], "lengths": [4]}\n{"event": "admit", "rows": [{"request": 7}]}\n', "no request 7"),
        ('{"prompts": [1], "lengths": [4]}\n{"eve', "line 2 is no event"),
    ],
)
def test_what_is_no_log_is_one_line(text: str, says: str, tmp_path: Path) -> None:
    """Kills a traceback, and a line that is skipped."""
    (tmp_path / "log").write_text(text)
    with pytest.raises(BadInput, match=says) as error:
        replay(tmp_path / "log")
    assert "\n" not in str(error.value)


def test_every_event_has_its_fields() -> None:
    """Kills a schedule whose lines lack what the schema of logs promises."""
    seen, state = {}, first(Sizes())
    for _ in range(40):
        for event, after in steps(state, Sizes()):
            seen[event[0]] = told(event)
            assert all(len(row) == len(FIELDS[event[0]]) for row in event[1:])
            state = after
    assert seen.keys() == FIELDS.keys()
