"""What `checkpoint verify` asks of DSpark's two heads: drafting without the Markov head, and cutting by confidence."""

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any, TypeAlias

from refengine.commands.acceptance import PRECISION, accepted, by_kind
from refengine.commands.prompts import Asked
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.loop import Played, Session
from refengine.report.finding import Finding, Quantity
from refengine.selfcheck.effects.confidence_rounds import (
    THRESHOLDS,
    Listener,
    Round,
    calibration_error,
    judged_places,
    judged_rounds,
    reliability_table,
    survival_table,
    sweep_table,
)

Play: TypeAlias = Callable[[str], Iterator[tuple[Asked, Session]]]  # every prompt's sampled decoding, to its end


def heads(drafter: Any, play: Play, common: dict[str, Any]) -> list[Finding]:
    """Findings about the heads that a DSpark has; none of another drafter. It is left as it was."""
    if not isinstance(drafter, DSpark):
        return []
    found = []
    if drafter.biased:
        drafter.biased = False
        found.append(accepted(by_kind(play("without the Markov head")), [], common, "without the Markov head"))
        drafter.biased = True
    if drafter.shape.enable_confidence_head:
        before = drafter.cut
        found.append(sweep(drafter, play, common))
        drafter.cut = before
    return found


def sweep(drafter: DSpark, play: Play, common: dict[str, Any]) -> Finding:
    """What thresholds do to blocks, tokens per pass and the target's work; and whether acceptance stays as promised."""
    every, columns, whole = dict[str, list[Played]](), [], list[Round]()
    for threshold in THRESHOLDS:
        listener = drafter.cut = Listener(threshold)
        rounds, emitted = list[Round](), []
        for _, session in play(f"confidence of {threshold}"):
            every.setdefault(f"threshold {threshold}", []).extend(session.rounds)
            emitted += [len(played.emitted) for played in session.rounds]
            rounds += judged_rounds(session, listener)
        whole = whole or rounds
        columns.append((fmean(len(r.confidences) for r in rounds), fmean(emitted)))
    judged = judged_places(whole)
    error = Quantity(value=calibration_error(judged), tolerance=PRECISION)
    more = {"positions judged": len(judged), "calibration error of the confidences": error}
    tables = {
        "sweep": sweep_table(columns, PRECISION),
        "reliability": reliability_table(judged, PRECISION),
        "survival": survival_table(whole, PRECISION),
    }
    return accepted(every, [], common, "cut by confidence", more, tables)
