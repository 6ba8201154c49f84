"""DSpark's confidence head on the fixtures, from runs of the loop: is it right, and what does cutting by it save?"""

from functools import cache
from statistics import fmean

import torch

from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.loop import Session, Stop
from refengine.decoder.protocols import Target
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.drafters.table import ROWS
from refengine.selfcheck.effects.confidence_rounds import (
    BINS,
    THRESHOLDS,
    Listener,
    Place,
    Round,
    calibration_error,
    cost,
    judged_places,
    judged_rounds,
    reliability_table,
    survival_table,
    sweep_table,
)
from refengine.source_tree import FIXTURES

TEXTS, LENGTH = 16, 40
TOLERANCE = 1e-4
DRAFTERS = ("dspark", "dspark_gemma4")  # rows of the table of drafters with a confidence head
SAMPLED = pipeline(temperature(1.0))
SOURCE = "Building DSpark, sections 5 and 7.4"


def confidence() -> list[Finding]:
    """Of every drafter: its head held to what was accepted, and what a threshold on it saves."""
    return [finding for name in DRAFTERS for finding in (*reliability(name), *sweep(name))]


def reliability(name: str) -> list[Finding]:
    """Shares accepted by confidence, and survival by position."""
    rounds, places = played(name, 0.0), judged(name)
    half = len(places) // 2
    unsure, sure = (fmean(place[1] for place in part) for part in (places[:half], places[half:]))
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
                "calibration error": _quantity(calibration_error(places)),
            },
            tables={
                "reliability": reliability_table(places, TOLERANCE),
                "survival": survival_table(rounds, TOLERANCE),
            },
        )
    ]


def judged(name: str) -> list[Place]:
    """Every position that the target judged, by rising confidence."""
    return judged_places(played(name, 0.0))


def sweep(name: str) -> list[Finding]:
    """What a threshold on the head does to blocks, to tau and to the target's work."""
    columns = []
    for threshold in THRESHOLDS:
        rounds = played(name, threshold)
        columns.append((fmean(len(r.confidences) for r in rounds), fmean(r.accepted + 1 for r in rounds)))
    (most, longest), *cut = columns
    faster = all(proposed / most <= tau / longest for proposed, tau in cut)
    return [
        Finding(
            id=f"effects/confidence/{name}/sweep",
            subject="effects in miniature",
            claim="A threshold cuts drafts by a larger factor than tokens, and the highest one saves the target work.",
            source=SOURCE,
            verdict="consistent" if faster and cost(*columns[-1]) < cost(*columns[0]) else "violated",
            method=_method("blocks end before the first confidence below the threshold"),
            recipe=Recipe(function=f"{__name__}:sweep", arguments={"name": name}),
            tables={"sweep": sweep_table(columns, TOLERANCE)},
        )
    ]


@cache
def played(name: str, threshold: float) -> tuple[Round, ...]:
    """Every round of the texts, drawn with the same coins for each threshold."""
    target = judge(ROWS[name].target)
    drafter = load_drafter(FIXTURES / ROWS[name].folder, target)
    assert isinstance(drafter, DSpark)
    listener = drafter.cut = Listener(threshold)
    rounds = list[Round]()
    for text in range(TEXTS):
        session = Session(target, drafter, leviathan, SAMPLED, LENGTH, Stop())
        coins = Philox(29, torch.tensor([text]))
        session.begin((text % target.vocabulary, 3), coins)
        while not session.done:
            session.play(coins)
        rounds += judged_rounds(session, listener)
    return tuple(rounds)


@cache
def judge(folder: str) -> Target:
    return load_target(FIXTURES / folder, torch.float64)


def _method(how: str) -> str:
    return f"{TEXTS} texts of {LENGTH} tokens, ratio rule at temperature 1, float64; {how}"


def _quantity(value: float) -> Quantity:
    return Quantity(value=value, tolerance=TOLERANCE)
