"""An enumerated law of one call, held to the conditional null."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from refengine.audit.schedule import Case, step
from refengine.evidence.rows import Rows

History = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]  # the rows of the batch before, the tokens emitted so far


@dataclass(frozen=True)
class Deviation:
    """How far a law is from the null at one place.

    tv          half the sum over histories and tokens of |mass - reach * p(token)|
    impossible  the mass of tokens with p = 0
    emitted     the history that contributes most: what this lane had emitted
    law, null   the next token after it: its conditional law, and the target's row
    """

    lane: int
    position: int
    tv: float
    impossible: float
    emitted: tuple[int, ...]
    law: tuple[float, ...]
    null: tuple[float, ...]


def deviations(case: Case, outcomes: list[Any]) -> list[Deviation]:
    """One per place of a call; `outcomes` is [(tokens per lane, probability)]."""
    lanes = len(outcomes[0][0])
    found = []
    for lane in range(lanes):
        for position in range(case.gamma + 1):
            masses: dict[History, Rows] = defaultdict(lambda: np.zeros(case.vocabulary))
            for tokens, mass in outcomes:
                if len(tokens[lane]) > position:
                    history = (tuple(map(tuple, tokens[:lane])), tuple(tokens[lane][:position]))
                    masses[history][tokens[lane][position]] += mass
            if masses:
                found.append(_deviation(case, lane, position, masses))
    return found


def _deviation(case: Case, lane: int, position: int, masses: dict[History, Rows]) -> Deviation:
    rows = {history: target_row(case, lane, history[1]) for history in masses}
    off = {history: float(np.abs(mass - mass.sum() * rows[history]).sum() / 2) for history, mass in masses.items()}
    impossible = sum(float(mass[rows[history] == 0].sum()) for history, mass in masses.items())
    worst = max(off, key=lambda history: off[history])
    law = masses[worst] / masses[worst].sum()
    return Deviation(
        lane, position, sum(off.values()), impossible, worst[1], tuple(law.tolist()), tuple(rows[worst].tolist())
    )


def target_row(case: Case, lane: int, emitted: tuple[int, ...]) -> Rows:
    """The target's row after what a lane has emitted."""
    context = 0
    for token in emitted:
        context = int(step(context, token, case.contexts))
    return np.asarray(case.p[lane, len(emitted), context])
