"""What became of drafts: how many were judged at each position, kept, and promised by p and q; tokens per pass."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from refengine.commands.decode_figures import by_position
from refengine.commands.prompts import Asked
from refengine.decoder.loop import Played, Session
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Quantity

PRECISION = 1e-3  # to which a mean comes out again on another machine, if every decision does


@dataclass
class Position:
    """Drafts at one position of a chain: judged, kept of them, and the sum of what p and q promise."""

    judged: int = 0
    kept: int = 0
    promised: float = 0.0


@dataclass
class Tally:
    """Of sampled rounds."""

    positions: list[Position] = field(default_factory=list)

    def add(self, played: Played) -> None:
        for depth, (kept, overlap) in enumerate(judgements(played)):
            if depth == len(self.positions):
                self.positions.append(Position())
            here = self.positions[depth]
            here.judged, here.kept, here.promised = here.judged + 1, here.kept + kept, here.promised + overlap

    def sums(self) -> tuple[int, int, float]:
        """Judged, kept, promised at all positions together."""
        return (
            sum(x.judged for x in self.positions),
            sum(x.kept for x in self.positions),
            sum(x.promised for x in self.positions),
        )


def by_kind(sessions: Iterator[tuple[Asked, Session]]) -> dict[str, list[Played]]:
    """The rounds of sessions, by the kind of their prompts."""
    rounds: dict[str, list[Played]] = {}
    for one, session in sessions:
        rounds.setdefault(one.kind, []).extend(session.rounds)
    return rounds


def accepted(
    rounds: Mapping[str, Sequence[Played]],
    notes: list[str],
    common: dict[str, Any],
    how: str = "",
    more: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Finding:
    """Kept minus promised is a martingale over the judged drafts, steps in an interval of length 1.

    rounds  by kind of prompt; notes: what was published, to stand beside what is measured
    how     drafting is done otherwise than the checkpoint says: in which way; more, tables: what else was measured
    """
    every = [played for some in rounds.values() for played in some]
    tally = Tally()
    for played in every:
        tally.add(played)
    judged, kept, promised = tally.sums()
    passes, shares = {kind: _per_pass(some) for kind, some in rounds.items()}, _positions(every)
    bound = math.sqrt(judged * math.log(2 / ALPHA) / 2)  # Azuma-Hoeffding
    off = abs(kept - promised) > bound
    return Finding(
        id=f"checkpoint/acceptance{how and ', '}{how}",
        claim=f"Drafts are accepted as often as the overlap of p and q says{how and ', '}{how}.",
        verdict="not tested" if not judged else "violated" if off else "consistent",
        reason="" if judged else "no chain was drafted: the acceptance of a tree is not a sum over its nodes",
        method=f"Azuma-Hoeffding at alpha {ALPHA}: off by at most {bound:.1f} of {judged} judged drafts",
        numbers={
            "judged": judged,
            "accepted": kept,
            "expected": Quantity(value=promised, tolerance=1e-3),
            **{f"tokens per pass, {kind}": Quantity(value=x, tolerance=PRECISION) for kind, x in passes.items()},
            **{f"accepted at {i}": Quantity(value=x, tolerance=PRECISION) for i, x in enumerate(shares, 1)},
            **(more or {}),
        },
        tables=({"acceptance": _table(tally)} if tally.positions else {}) | dict(tables or {}),
        witness={"accepted": kept, "expected": promised, "judged": judged} if off else None,
        notes=[
            f"measured: tokens per pass: {', '.join(f'{kind} {x:.2f}' for kind, x in passes.items())} (temperature 1)",
            f"measured: accepted by position: {' '.join(f'{x:.2f}' for x in shares)}",
            *notes,
        ],
        **common,
    )


def judgements(played: Played) -> Iterator[tuple[bool, float]]:
    """Of a chain: every draft that was judged, whether it was kept, and the probability of keeping one at its place."""
    block = played.block
    count = block.tokens.shape[1]
    if not torch.equal(block.parents[0].cpu(), torch.arange(-1, count - 1)):
        return
    for i in range(min(count, len(played.verdict.path) + 1)):
        if block.q is None:
            overlap = float(played.p[i, block.tokens[0, i]])
        else:
            overlap = float(torch.minimum(played.p[i], block.q[0, i]).sum())
        yield i < len(played.verdict.path), overlap


def _per_pass(rounds: Sequence[Played]) -> float:
    return sum(len(played.emitted) for played in rounds) / max(1, len(rounds))


def _positions(rounds: Sequence[Played]) -> list[float]:
    """By depth, of trees too: how often a candidate was accepted where there was one to judge."""
    found: list[float] = by_position(list(rounds))["accepted of those judged, by position"]
    return found


def _table(tally: Tally) -> dict[str, list[Any]]:
    """For the plot: what is kept of those judged, beside what 1 - TV promises."""
    return {
        "position": list(range(1, len(tally.positions) + 1)),
        "expected": [round(x.promised / x.judged, 4) for x in tally.positions],
        "observed": [round(x.kept / x.judged, 4) for x in tally.positions],
        "count": [x.judged for x in tally.positions],
    }
