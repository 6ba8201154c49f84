"""What rounds of a drafter with a confidence head show of it: stated against kept, survival, and what a cut saves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import mul
from statistics import fmean
from typing import Any, TypeAlias

import torch

from refengine.decoder.drafters.dspark_schedule import Threshold
from refengine.decoder.loop import Session
from refengine.report.finding import Quantity

BINS = 8
THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
Place: TypeAlias = tuple[float, float, float]  # stated confidence, 1 - TV of the rows, whether accepted
Columns: TypeAlias = dict[str, list[Any]]


@dataclass
class Listener:
    """Stands for a drafter's cut: writes the confidences of every block down, and cuts as a threshold does."""

    threshold: float
    blocks: list[list[float]] = field(default_factory=list)

    def __call__(self, confidences: Sequence[float]) -> bool:
        if len(confidences) == 1:
            self.blocks.append([])
        self.blocks[-1] = list(confidences)
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


def judged_rounds(session: Session, listener: Listener) -> Iterator[Round]:
    """Every round of a session that the listener heard from its beginning; the listener is empty afterwards.

    A block that was cut has no position for its last confidence.
    """
    blocks, listener.blocks = listener.blocks, []
    for played, heard in zip(session.rounds, blocks, strict=True):
        count = played.block.tokens.shape[1]
        q = played.block.q[0] if played.block.q is not None and count else played.p[:0]
        overlaps = torch.minimum(played.p[:count], q[:count]).sum(-1)
        yield Round(tuple(heard[:count]), tuple(overlaps.tolist()), len(played.verdict.path))


def judged_places(rounds: Sequence[Round]) -> list[Place]:
    """Every position that the target judged, by rising confidence."""
    found = [(r.confidences[k], r.overlaps[k], float(k < r.accepted)) for r in rounds for k in r.reached()]
    return sorted(found, key=lambda place: place[0])


def in_bins(places: Sequence[Place]) -> list[Place]:
    """The mean place of each of BINS bins of equal size."""
    return [(fmean(x for x, _, _ in b), fmean(y for _, y, _ in b), fmean(z for _, _, z in b)) for b in bins(places)]


def bins(places: Sequence[Place]) -> list[Sequence[Place]]:
    cuts = [len(places) * b // BINS for b in range(BINS + 1)]
    return [places[low:high] for low, high in pairwise(cuts)]


def calibration_error(places: Sequence[Place]) -> float:
    """The mean distance, over the bins, of the stated confidence and 1 - TV."""
    return fmean(abs(stated - overlap) for stated, overlap, _ in in_bins(places))


# --- for the plots of these names ------------------------------------------------------------------------------------


def reliability_table(places: Sequence[Place], tolerance: float) -> Columns:
    drawn = _quantities(("confidence", "expected", "observed"), in_bins(places), tolerance)
    return {**drawn, "count": [len(part) for part in bins(places)]}


def survival_table(rounds: Sequence[Round], tolerance: float) -> Columns:
    """The mean product of confidences up to a position, beside how often the target kept all up to it."""
    slots = range(min(len(r.confidences) for r in rounds))
    products = [[*accumulate(r.confidences, mul)] for r in rounds]
    means = [(fmean(p[k] for p in products), fmean(float(r.accepted > k) for r in rounds)) for k in slots]
    drawn = _quantities(("expected", "observed"), means, tolerance)
    return {"position": [k + 1 for k in slots], **drawn, "count": [len(rounds)] * len(slots)}


def sweep_table(columns: Sequence[tuple[float, float]], tolerance: float) -> Columns:
    """Of each of THRESHOLDS: positions proposed in a round, and tau; the cost is the target's rows for a token."""
    rows = [
        (least, proposed, tau, cost(proposed, tau)) for least, (proposed, tau) in zip(THRESHOLDS, columns, strict=True)
    ]
    return _quantities(("threshold", "proposed", "tau", "cost"), rows, tolerance)


def cost(proposed: float, tau: float) -> float:
    return (proposed + 1) / tau


def _quantities(names: Sequence[str], rows: Sequence[Sequence[float]], tolerance: float) -> Columns:
    return {name: [Quantity(value=row[i], tolerance=tolerance) for row in rows] for i, name in enumerate(names)}
