"""DSpark's confidence head on the fixtures, from runs of the loop: is it right, and what does cutting by it save?"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from operator import mul
from statistics import fmean
from typing import TypeAlias

import torch

from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.drafters.dspark_schedule import Threshold
from refengine.decoder.loop import Session, Stop
from refengine.decoder.protocols import Target
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

TEXTS, LENGTH, BINS = 16, 40, 8
THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
DRAFTERS = ("dspark", "dspark_gemma4")  # rows of the table of drafters with a confidence head
SAMPLED = pipeline(temperature(1.0))
SOURCE = "Building DSpark, sections 5 and 7.4"
Place: TypeAlias = tuple[float, float, float]  # stated confidence, 1 - TV of the rows, whether accepted


@dataclass
class Listener:
    """Stands for a drafter's cut: writes the confidences of a block down, and cuts as a threshold does."""

    threshold: float
    heard: list[float] = field(default_factory=list)

    def __call__(self, confidences: Sequence[float]) -> bool:
        self.heard = list(confidences)
        return Threshold(self.threshold)(confidences)


@dataclass(frozen=True)
class Round:
    """confidences and overlaps (1 - TV of the rows) of the drafted positions, and how many were accepted."""

    confidences: tuple[float, ...]
    overlaps: tuple[float, ...]
    accepted: int

    def reached(self) -> range:
        """Positions that the target judged: the accepted ones, and the first that was not."""
        return range(min(self.accepted + 1, len(self.confidences)))


def confidence() -> list[Finding]:
    """Of every drafter: its head held to what was accepted, and what a threshold on it saves."""
    return [finding for name in DRAFTERS for finding in (*reliability(name), *sweep(name))]


def reliability(name: str) -> list[Finding]:
    """Shares accepted by confidence, and survival by position."""
    rounds, places = played(name, 0.0), judged(name)
    half = len(places) // 2
    unsure, sure = (fmean(place[1] for place in part) for part in (places[:half], places[half:]))
    bins = in_bins(places)
    slots = range(max(len(r.confidences) for r in rounds))
    products = [[*accumulate(r.confidences, mul)] for r in rounds]
    return [
        Finding(
            id=f"effects/confidence/{name}",
            subject="effects in miniature",
            claim="At positions that the confidence head is surer of, p and q overlap more.",
            source=SOURCE,
            verdict="consistent" if sure > unsure else "violated",
            method=_method(f"{len(places)} positions that the target judged, {BINS} bins of equal size by confidence"),
            recipe=Recipe(function=f"{__name__}:reliability", arguments={"name": name}),
            numbers={
                "rounds": len(rounds),
                "positions judged": len(places),
                "1 - TV, the less sure half": _quantity(unsure),
                "1 - TV, the surer half": _quantity(sure),
                "calibration error": _quantity(calibration_error(name)),
            },
            tables={
                "reliability": {
                    "confidence": [_quantity(stated) for stated, _, _ in bins],
                    "expected": [_quantity(overlap) for _, overlap, _ in bins],
                    "observed": [_quantity(accepted) for _, _, accepted in bins],
                },
                "survival": {
                    "position": [k + 1 for k in slots],
                    "expected": [_quantity(fmean(p[k] for p in products)) for k in slots],
                    "observed": [_quantity(fmean(float(r.accepted > k) for r in rounds)) for k in slots],
                },
            },
        )
    ]


def judged(name: str) -> list[Place]:
    """Every position that the target judged, by rising confidence."""
    rounds = played(name, 0.0)
    places = [(r.confidences[k], r.overlaps[k], float(k < r.accepted)) for r in rounds for k in r.reached()]
    return sorted(places, key=lambda place: place[0])


def in_bins(places: Sequence[Place]) -> list[Place]:
    """The mean place of each of BINS bins of equal size."""
    cuts = [len(places) * b // BINS for b in range(BINS + 1)]
    return [
        (fmean(x for x, _, _ in part), fmean(y for _, y, _ in part), fmean(z for _, _, z in part))
        for part in (places[low:high] for low, high in pairwise(cuts))
    ]


def calibration_error(name: str) -> float:
    """The mean distance, over the bins, of the stated confidence and 1 - TV."""
    return fmean(abs(stated - overlap) for stated, overlap, _ in in_bins(judged(name)))


def sweep(name: str) -> list[Finding]:
    """What a threshold on the head does to blocks, to tau and to the target's work."""
    columns = []
    for threshold in THRESHOLDS:
        rounds = played(name, threshold)
        proposed, tau = fmean(len(r.confidences) for r in rounds), fmean(r.accepted + 1 for r in rounds)
        columns.append((proposed, tau, (proposed + 1) / tau))
    (most, longest, dearest), *cut = columns
    faster = all(proposed / most <= tau / longest for proposed, tau, _ in cut)
    return [
        Finding(
            id=f"effects/confidence/{name}/sweep",
            subject="effects in miniature",
            claim="A threshold shortens the proposed block by more than tau, and the highest saves the target work.",
            source=SOURCE,
            verdict="consistent" if faster and columns[-1][2] < dearest else "violated",
            method=_method("blocks end before the first confidence below the threshold"),
            recipe=Recipe(function=f"{__name__}:sweep", arguments={"name": name}),
            tables={
                "sweep": {
                    "threshold": [_quantity(threshold) for threshold in THRESHOLDS],
                    "proposed": [_quantity(proposed) for proposed, _, _ in columns],
                    "tau": [_quantity(tau) for _, tau, _ in columns],
                    "cost": [_quantity(cost) for _, _, cost in columns],
                }
            },
        )
    ]


@cache
def played(name: str, threshold: float) -> tuple[Round, ...]:
    """Every round of the texts, drawn with the same coins for each threshold."""
    target = judge(ROWS[name].target)
    drafter = load_drafter(FIXTURES / ROWS[name].folder, target)
    assert isinstance(drafter, DSpark)
    listener = drafter.cut = Listener(threshold)
    rounds = []
    for text in range(TEXTS):
        session = Session(target, drafter, leviathan, SAMPLED, LENGTH, Stop())
        coins = Philox(29, torch.tensor([text]))
        session.begin((text % target.vocabulary, 3), coins)
        while not session.done:
            session.play(coins)
            rounds.append(judged_round(session, listener))
    return tuple(rounds)


def judged_round(session: Session, listener: Listener) -> Round:
    """The last round. A block that was cut at once has no positions."""
    last = session.rounds[-1]
    count = last.block.tokens.shape[1]
    q = last.block.q[0] if last.block.q is not None and count else last.p[:0]
    overlaps = torch.minimum(last.p[:count], q[:count]).sum(-1)
    return Round(tuple(listener.heard[:count]), tuple(overlaps.tolist()), len(last.verdict.path))


@cache
def judge(folder: str) -> Target:
    return load_target(FIXTURES / folder, torch.float64)


def _method(how: str) -> str:
    return f"{TEXTS} texts of {LENGTH} tokens, ratio rule at temperature 1, float64; {how}"


def _quantity(value: float) -> Quantity:
    return Quantity(value=value, tolerance=1e-4)
