"""What `checkpoint verify` asks of DSpark's two heads: drafting without the Markov head, and cutting by confidence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from statistics import fmean
from typing import Any, TypeAlias

from refengine.commands.acceptance import accepted, judgements
from refengine.commands.prompts import Asked
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.drafters.dspark_schedule import Threshold
from refengine.decoder.loop import Played, Session
from refengine.report.finding import Finding, Quantity
from refengine.selfcheck.effects.confidence import Place, in_bins

THRESHOLDS = (0.0, 0.5, 0.7, 0.9)
PRECISION = 1e-3  # to which a mean comes out again on another machine, if every decision does
Play: TypeAlias = Callable[[str], Iterator[tuple[Asked, Session]]]  # every prompt's sampled decoding, to its end


@dataclass
class Written:
    """Stands for a drafter's cut: writes the confidences of every block down, and cuts as a threshold does."""

    threshold: float
    blocks: list[list[float]] = field(default_factory=list)

    def __call__(self, confidences: Sequence[float]) -> bool:
        if len(confidences) == 1:
            self.blocks.append([])
        self.blocks[-1] = list(confidences)
        return Threshold(self.threshold)(confidences)


@dataclass(frozen=True)
class Cut:
    """A round of a drafter that is cut: the confidences of what it proposed, and what was judged of it."""

    confidences: tuple[float, ...]
    judged: tuple[tuple[bool, float], ...]  # kept, and 1 - TV of the rows
    emitted: int


def heads(drafter: Any, play: Play, common: dict[str, Any]) -> list[Finding]:
    """Findings about the heads that a DSpark has; none of another drafter. It is left as it was."""
    if not isinstance(drafter, DSpark):
        return []
    found = []
    if drafter.biased:
        drafter.biased = False
        found.append(accepted(_by_kind(play("without the Markov head")), [], common, "without the Markov head"))
        drafter.biased = True
    if drafter.shape.enable_confidence_head:
        before = drafter.cut
        found.append(sweep(drafter, play, common))
        drafter.cut = before
    return found


def sweep(drafter: DSpark, play: Play, common: dict[str, Any]) -> Finding:
    """What thresholds do to blocks, tokens per pass and the target's work; and whether acceptance stays as promised."""
    every, columns, whole = dict[str, list[Played]](), [], list[Cut]()
    for threshold in THRESHOLDS:
        written = drafter.cut = Written(threshold)
        rounds: list[Cut] = []
        for _, session in play(f"confidence of {threshold}"):
            every.setdefault(f"threshold {threshold}", []).extend(session.rounds)
            rounds += [_cut(played, block) for played, block in zip(session.rounds, written.blocks, strict=True)]
            written.blocks.clear()
        whole = whole or rounds
        proposed, tau = fmean(len(r.confidences) for r in rounds), fmean(r.emitted for r in rounds)
        columns.append((proposed, tau, (proposed + 1) / tau))
    places = _places(whole)
    tables = {"sweep": _sweep(columns), "reliability": _reliability(places), "survival": _survival(whole)}
    error = fmean(abs(stated - overlap) for stated, overlap, _ in in_bins(places))
    more = {"positions judged": len(places), "calibration error of the confidences": _quantity(error)}
    return accepted(every, [], common, "cut by confidence", more, tables)


def _by_kind(sessions: Iterator[tuple[Asked, Session]]) -> dict[str, list[Played]]:
    rounds: dict[str, list[Played]] = {}
    for one, session in sessions:
        rounds.setdefault(one.kind, []).extend(session.rounds)
    return rounds


def _cut(played: Played, block: Sequence[float]) -> Cut:
    """The last confidence of a block that was cut is of a position that was not drafted."""
    count = played.block.tokens.shape[1]
    return Cut(tuple(block[:count]), tuple(judgements(played)), len(played.emitted))


def _places(rounds: Sequence[Cut]) -> list[Place]:
    """Every judged position by rising confidence: the confidence, 1 - TV, whether it was kept."""
    places = [
        (stated, overlap, float(kept))
        for r in rounds
        for stated, (kept, overlap) in zip(r.confidences, r.judged, strict=False)  # behind a rejection none is judged
    ]
    return sorted(places, key=lambda place: place[0])


def _sweep(columns: Sequence[tuple[float, float, float]]) -> dict[str, list[Any]]:
    return {
        "threshold": [_quantity(threshold) for threshold in THRESHOLDS],
        "proposed": [_quantity(proposed) for proposed, _, _ in columns],
        "tau": [_quantity(tau) for _, tau, _ in columns],
        "cost": [_quantity(cost) for _, _, cost in columns],
    }


def _reliability(places: Sequence[Place]) -> dict[str, list[Any]]:
    bins = in_bins(places)
    return {
        name: [_quantity(place[i]) for place in bins] for i, name in enumerate(("confidence", "expected", "observed"))
    }


def _survival(rounds: Sequence[Cut]) -> dict[str, list[Any]]:
    """The mean product of confidences up to a position, beside how often the target kept all up to it."""
    length = min(len(r.confidences) for r in rounds)  # a last block may be shorter than the others
    products = [[*accumulate(r.confidences, mul)] for r in rounds]
    kept = [sum(one for one, _ in r.judged) for r in rounds]
    return {
        "position": [k + 1 for k in range(length)],
        "expected": [_quantity(fmean(p[k] for p in products)) for k in range(length)],
        "observed": [_quantity(fmean(float(n > k) for n in kept)) for k in range(length)],
    }


def _quantity(value: float) -> Quantity:
    return Quantity(value=value, tolerance=PRECISION)
