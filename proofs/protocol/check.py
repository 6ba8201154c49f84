"""Every state of a model, breadth first; the shortest way to one that breaks an invariant."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from proofs.protocol import model as honest


@dataclass
class Found:
    """states: how many there are; broken: the invariant that is broken first, "" for none; schedule: the way there.

    stuck: states that are no end and have no way on; ends: states in which every request is done
    """

    states: int = 0
    broken: str = ""
    schedule: list[str] = field(default_factory=list)
    stuck: int = 0
    ends: int = 0


def check(sizes: Any, model: ModuleType = honest, without: Collection[str] = ()) -> Found:
    """Visit every state. without: invariants that are not looked at; what breaks one is then not gone on with."""
    start = model.first(sizes)
    came: dict[Any, tuple[Any, Any] | None] = {start: None}  # state -> (the state before, the event)
    queue, found = deque([start]), Found()
    while queue:
        state = queue.popleft()
        found.states += 1
        count = 0
        try:
            for event, after in model.steps(state, sizes):
                count += 1
                if after not in came:
                    came[after] = (state, event)
                    queue.append(after)
        except model.Broken as broken:
            if broken.invariant in without:
                continue
            found.broken = broken.invariant
            found.schedule = [*schedule(came, state), str(broken)]
            return found
        done = tuple(q.known for q in state.requests) == sizes.lengths
        found.ends += done
        found.stuck += not count and not done
    return found


def schedule(came: dict[Any, tuple[Any, Any] | None], state: Any) -> list[str]:
    """The events that lead to a state, a line each."""
    lines: list[str] = []
    while (before := came[state]) is not None:
        state, event = before
        lines.append(told(event))
    return lines[::-1]


def told(event: Any) -> str:
    """schedule request 0 start 0 fresh 1 drafts 0; ..."""
    word, *rows = event
    fields = honest.FIELDS[word]
    return f"{word} " + "; ".join(" ".join(f"{name} {x}" for name, x in zip(fields, row, strict=True)) for row in rows)
