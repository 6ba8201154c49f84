"""The exact law of the real loop: every decision of `Session` enumerated, caches, positions and rollback included.

Histories that emitted the same tokens continue alike if, and only if, their live state is the same. So each one's full
state is compared with a recompute from scratch after every round; those that agree share one continuation, and one that
does not agree is counted as a mismatch and goes its own way. It is never merged.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import Tensor

from refengine.decoder.loop import Session
from refengine.decoder.protocols import State, Tokens
from refengine.decoder.rows import depth
from refengine.engine.coins import Branching
from refengine.exact.chance import runs

# float64 states that agree differ by rounding (about 1e-14 here); a stale row or position differs by 1e-3 and more.
TOLERANCE = 1e-10

# One round as it can be seen from outside: depth of the block (of a chain: tokens drafted), accepted, emitted.
Seen: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Outcome:
    """Where a history got to: its tokens, its rounds, and whether it ended at a stop token."""

    out: Tokens
    rounds: tuple[Seen, ...]
    stopped: bool


@dataclass
class LoopLaw:
    """The law of `rounds` rounds, and what was seen on the way.

    mismatches  states that differed from the recompute: (tokens, first entry that differs)
    """

    law: dict[Outcome, float] = field(default_factory=dict)
    runs: int = 0
    compared: int = 0
    mismatches: list[tuple[Tokens, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Node:
    """A class of histories with one continuation: the tokens so far, and the live state they share."""

    out: Tokens
    state: State
    stopped: bool
    ended: bool


@dataclass
class Enumeration:
    """Enumerates one request. `session` is the loop that is under test; `pool.*` state keeps histories apart."""

    session: Session
    prompt: Tokens
    found: LoopLaw = field(default_factory=LoopLaw)
    scratch: dict[Tokens, State] = field(default_factory=dict)
    nodes: dict[object, _Node] = field(default_factory=dict)

    def rounds(self, count: int) -> LoopLaw:
        """Begin, then play `count` rounds."""
        now: dict[tuple[object, tuple[Seen, ...]], float] = {}
        for key, weight, _ in self._steps(lambda coins: self.session.begin(self.prompt, coins), None):
            now[key, ()] = now.get((key, ()), 0.0) + weight
        for _ in range(count):
            following: dict[tuple[object, tuple[Seen, ...]], float] = {}
            steps: dict[object, list[tuple[object, float, Seen | None]]] = {}
            for (key, seen), mass in now.items():
                node = self.nodes[key]
                if node.ended:
                    following[key, seen] = mass
                    continue
                if key not in steps:
                    steps[key] = self._steps(self.session.play, node)
                for after, weight, one in steps[key]:
                    assert one is not None
                    place = (after, (*seen, one))
                    following[place] = following.get(place, 0.0) + mass * weight
            now = following
        for (key, seen), mass in now.items():
            outcome = Outcome(self.nodes[key].out, seen, self.nodes[key].stopped)
            self.found.law[outcome] = self.found.law.get(outcome, 0.0) + mass
        return self.found

    def _steps(self, step: Callable[[Branching], None], node: _Node | None) -> list[tuple[object, float, Seen | None]]:
        """Every way in which one step can go from a node: (key of the node after it, probability, what was seen)."""

        def once(chance: object) -> tuple[object, Seen | None]:
            if node is not None:
                self.session.restore(self.prompt, node.out, node.state)
            step(Branching(chance))  # type: ignore[arg-type]
            seen: Seen | None = None
            if node is not None:
                played = self.session.rounds[-1]
                seen = depth(played.block), len(played.verdict.path), len(played.emitted)
            return self._arrive(), seen

        ways = [(key, float(weight), seen) for (key, seen), weight, _ in runs(once)]
        self.found.runs += len(ways)
        return ways

    def _arrive(self) -> object:
        """File the session's present state under the key of its class."""
        s = self.session
        stopped = s.done and s.stop.reached(s.out)
        if s.done:
            key: object = (s.out, "ended")
            self.nodes.setdefault(key, _Node(s.out, {}, stopped, True))
            return key
        state = s.state()
        if s.out not in self.scratch:
            s.rebuild(self.prompt, s.out)
            self.scratch[s.out] = s.state()
        self.found.compared += 1
        differs = difference(state, self.scratch[s.out])
        key = (s.out, tuple((name, _plain(state[name])) for name in sorted(state) if "pool." in name))
        if differs:
            self.found.mismatches.append((s.out, differs))
            key = (s.out, len(self.nodes))
        self.nodes.setdefault(key, _Node(s.out, state, stopped, False))
        return key


def difference(a: State, b: State, tolerance: float = TOLERANCE) -> str:
    """The first entry (other than `pool.*`) in which two states differ, as a phrase; empty where they agree."""
    names = sorted(name for name in a.keys() | b.keys() if "pool." not in name)
    for name in names:
        if name not in a or name not in b:
            return f"{name} is there in one of them only"
        x, y = a[name], b[name]
        if not isinstance(x, Tensor):
            if x != y:
                return f"{name} is {x}, not {y}"
        elif x.shape != y.shape:
            return f"{name} has shape {list(x.shape)}, not {list(y.shape)}"
        elif x.numel() and float((x - y).abs().max()) > tolerance:
            return f"{name} differs by {float((x - y).abs().max()):.1e}"
    return ""


def off_scratch(play: Session, tolerance: float = TOLERANCE) -> str:
    """In what the live state differs from a recompute from scratch; the session goes on as it was."""
    prompt, out, state = play.prompt, play.out, play.state()
    play.rebuild(prompt, out)
    differs = difference(state, play.state(), tolerance)
    play.restore(prompt, out, state)
    return differs


def _plain(value: object) -> object:
    return tuple(value.flatten().tolist()) if isinstance(value, Tensor) else value
