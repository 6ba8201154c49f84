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
        done = all(q.known >= sizes.length for q in state.requests)
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
    word, *parts = event
    names = {"schedule": "request {}: {2} tokens from {1}, {3} drafts", "execute": "request {}: {} drafts kept"}
    form = {"schedule": "request {0}: {2} tokens from position {1} and {3} drafts", "execute": "request {0} keeps {1}"}
    del names
    return f"{word} " + "; ".join(form[word].format(*p) if word in form else f"request {p}" for p in parts)
