"""The suite as findings: one for each claim, and a verdict that says what was looked at and what would have shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refengine.audit.served.belief import Faults
from refengine.audit.served.cells import Parity
from refengine.audit.served.suite import State, Suite, beliefs
from refengine.report.finding import Finding, Quantity, Recipe

SOURCE = "Leviathan et al. 2023, Theorem 1: speculation changes nothing that a user is sent"
MISSED = 0.01  # the probability with which a fault at least so frequent would not have shown


@dataclass(frozen=True)
class Named:
    """Who was audited, and how the findings are made again."""

    kind: str  # endpoint | generate
    subject: str
    recipe: Recipe


def findings(suite: Suite, named: Named) -> Iterator[Finding]:
    """One finding a claim, in the order of the suite; then what could not be asked."""
    for name, claim, belief, state in beliefs(suite):
        yield _finding(suite, named, name, claim, belief, state)
    for name, reason in suite.plan.untested.items():
        yield Finding(
            id=f"audit.{named.kind}/{name}",
            subject=named.subject,
            claim=f"{name} gives what it gives without speculation.",
            source=SOURCE,
            role="subject",
            verdict="not tested",
            reason=reason,
            method="none",
            recipe=named.recipe,
            replay="statistical",
        )


def _finding(suite: Suite, named: Named, name: str, claim: str, belief: Any, state: State | None) -> Finding:
    several = state is not None and len(state.cell.beliefs) > 1
    common: dict[str, Any] = {
        "id": f"audit.{named.kind}/{name}" + (f": {claim}" if several else ""),
        "subject": named.subject,
        "claim": claim,
        "source": SOURCE,
        "role": "subject",
        "method": f"sequential evidence, {belief.looks} looks, alpha {suite.alpha:g} over all claims",
        "recipe": named.recipe,
        "replay": "statistical",
        "numbers": {**belief.counts(), "nats": Quantity(value=round(belief.log_evidence, 2), tolerance=1e9)},
    }
    if belief.log_evidence >= suite.bar:
        return Finding(
            verdict="violated", witness=belief.witnesses[0], diagnosis=_diagnosis(name, claim, state), **common
        )
    if state is not None and state.failed:
        return Finding(verdict="not tested", reason=state.failed, **common)
    if not belief.looks:
        return Finding(verdict="not tested", reason="no request showed anything of it", **common)
    if belief.signs and not _ties(belief):
        reason = f"it showed in {belief.signs} of {belief.looks} looks, too few to decide: give it more --requests"
        return Finding(verdict="not tested", reason=reason, notes=_shown(belief), **common)
    if isinstance(cell := state.cell if state else None, Parity) and cell.looks and not cell.changes:
        reason = f"without speculation it changes none of {cell.looks} completions: the server ignores it"
        return Finding(verdict="not tested", reason=reason, **common)
    share = 1 - MISSED ** (1 / belief.looks)
    note = f"What shows in {share:.0%} of requests or more would have shown, with probability {1 - MISSED:.0%}."
    return Finding(verdict="consistent", notes=[note, *_both(belief)], **common)


def _beside(suite: Suite) -> list[str]:
    """Faults of the metadata that show with speculation alone: often the cause, seldom decided first."""
    shows = {name: b.signs for name, b in suite.bench.metadata.items() if b.signs > b.looks // 2}
    return [f"With speculation alone {name}, in {n} answers." for name, n in shows.items()]


def _ties(belief: Any) -> bool:
    """Whether what showed is no more than ties may account for."""
    return bool(belief.log_evidence <= 0)


def _both(belief: Any) -> list[str]:
    counts = belief.counts()
    if isinstance(belief, Faults) and counts["without"]:
        return [f"It shows without speculation too, in {counts['without']} of {belief.looks} looks."]
    return []


def _shown(belief: Any) -> list[str]:
    return [f"An example: {witness}" for witness in belief.witnesses[:1]]


def _diagnosis(name: str, claim: str, state: State | None) -> str:
    """What a maintainer reads first."""
    cell = state.cell if state is not None else None
    if isinstance(cell, Parity) and "text" in claim:
        if cell.changes and cell.as_plain >= 0.9 * cell.changes:
            return f"{cell.option.name} is ignored with speculation"
        return f"{cell.option.name} does something else with speculation"
    if isinstance(cell, Parity):
        return f"log probabilities under {cell.option.name} differ with speculation"
    return f"{name}: with speculation alone"
