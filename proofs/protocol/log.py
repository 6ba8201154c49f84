"""What an engine did, held to the protocol: the first event that it does not allow.

A log is JSON lines. The first says the sizes, as in `model.Sizes`:

    {"prompts": [1, 1], "lengths": [4, 4], "gamma": 2, "block": 2, "budget": 4, "ahead": true}

then each line is an event, with the fields of `model.FIELDS` for each request that it happens to:

    {"event": "schedule", "rows": [{"request": 0, "start": 0, "fresh": 1, "drafts": 0}]}

A field that is left out is not compared. What a log does not say (which drafts are right) is kept open: every state
that fits is carried along. Requests are few, as in a test under stress: every batch that could be made is tried.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.protocol.check import told
from proofs.protocol.model import FIELDS, Event, Sizes, first, steps
from refengine.errors import BadInput

MAX_TOLD = 4  # events that would have been allowed


@dataclass(frozen=True)
class Refused:
    """The first event that is not allowed: its line, and what could have happened instead."""

    line: int
    event: str
    allowed: list[str]


def replay(file: Path) -> tuple[int, Refused | None]:
    """The events that the protocol allows, and the one after them. Raises BadInput for what is no log."""
    lines = list(_lines(file))
    if not lines:
        raise BadInput(f"{file} is empty: its first line says the sizes")
    sizes = _sizes(*lines[0], file)
    states = {first(sizes)}
    for count, (number, event) in enumerate(lines[1:]):
        wanted = _wanted(number, event, sizes, file)
        possible = [(one, after) for state in states for one, after in steps(state, sizes)]
        states = {after for one, after in possible if _fits(one, wanted)}
        if not states:
            allowed = sorted({told(one) for one, _ in possible}, key=lambda text: (text.split()[0] != wanted[0], text))
            return count, Refused(number, json.dumps(event), allowed[:MAX_TOLD])
    return len(lines) - 1, None


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if line.strip():
                event = json.loads(line)
                if not isinstance(event, dict):
                    raise ValueError("not an object")
                yield number, event
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(f"{file}, line {number} is no event: {error}") from None


def _sizes(number: int, told_: dict[str, Any], file: Path) -> Sizes:
    sizes = {name: tuple(value) if isinstance(value, list) else value for name, value in told_.items()}
    if not {"prompts", "lengths"} <= sizes.keys() <= set(Sizes._fields):
        raise BadInput(f"{file}, line {number} does not say the sizes: {', '.join(Sizes._fields)}")
    if len(sizes["prompts"]) != len(sizes["lengths"]) or any(
        not 0 < prompt < length for prompt, length in zip(sizes["prompts"], sizes["lengths"], strict=True)
    ):
        raise BadInput(f"{file}, line {number}: each request has a prompt, and a length above it")
    return Sizes(**sizes)


def _wanted(number: int, event: dict[str, Any], sizes: Sizes, file: Path) -> tuple[str, list[dict[str, int]]]:
    word, rows = event.get("event"), event.get("rows")
    if word not in FIELDS or not isinstance(rows, list):
        raise BadInput(f"{file}, line {number} has no event with rows: one of {', '.join(FIELDS)}")
    for row in rows:
        if not isinstance(row, dict) or "request" not in row or not row.keys() <= set(FIELDS[word]):
            raise BadInput(f"{file}, line {number}: a row of {word} has {', '.join(FIELDS[word])}")
        if row["request"] not in range(len(sizes.prompts)):
            raise BadInput(f"{file}, line {number}: there is no request {row['request']}")
    return word, sorted(rows, key=lambda row: int(row["request"]))


def _fits(one: Event, wanted: tuple[str, list[dict[str, int]]]) -> bool:
    word, *rows = one
    return (
        word == wanted[0]
        and len(rows) == len(wanted[1])
        and all(
            row[FIELDS[word].index(name)] == value
            for row, told_ in zip(rows, wanted[1], strict=True)
            for name, value in told_.items()
        )
    )
