"""Cells: one drafter, rule and policy on tiny trained networks in float64, and what their exact law is compared with.

The exact law of a cell's loop must be the target's own joint law of the next tokens, every state on the way must equal
its recompute from scratch, and each state bug that is planted must move the law. A cell also says how its mass went,
because one that never rejects proves nothing.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from typing import Any, TypeAlias

import torch
from torch import Tensor

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import Rule, Session, Stop
from refengine.decoder.protocols import Drafter, Target, Tokens
from refengine.decoder.targets.base import Float64
from refengine.engine.policy import (
    Policy,
    logit_bias,
    pipeline,
    presence_penalty,
    repetition_penalty,
    temperature,
    top_k,
    top_p,
)
from refengine.engine.rules import RULES
from refengine.exact import law as exact
from refengine.selfcheck.drafters.laws.exact_law import Enumeration, LoopLaw
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.planted_bugs import Plant
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.loader import edited_module
from refengine.source_tree import FIXTURES

Law: TypeAlias = dict[Any, float]

# Rounding of a cell's sums stays under 1e-13; a cut of a policy must be further from a tie than any two passes differ.
EXACT, CUT, MOVED = 1e-12, 1e-9, 1e-6

ONLY = logit_bias({token: float("-inf") for token in (1, 4, 5, 6, 7)})  # three words of the language are left: 0, 2, 3
POLICIES: dict[str, Policy] = {
    "temperature-1": pipeline(ONLY, temperature(1.0)),
    "temperature-1/2": pipeline(ONLY, temperature(0.5)),
    "temperature-1.3": pipeline(ONLY, temperature(1.3)),
    "top-k": pipeline(top_k(2)),
    "top-p": pipeline(temperature(0.7), top_p(0.6)),
    "history": pipeline(repetition_penalty(1.3), presence_penalty(0.4), top_k(2)),
    "mixed": pipeline(repetition_penalty(1.2), temperature(0.8), top_k(2), top_p(0.95)),
}


@dataclass(frozen=True)
class Cell:
    """One exact-law cell. `threshold` cuts a block by confidence; `length` tokens are compared."""

    drafter: str
    policy: str
    rule: str = "leviathan"
    threshold: float = 0.0
    prompt: Tokens = (4, 3, 4, 0)
    length: int = 5
    rounds: int = 3
    stop: Tokens = ()

    @property
    def name(self) -> str:
        extra = ["truncated"] * (self.threshold > 0) + ["stop"] * bool(self.stop)
        return "/".join([self.drafter, self.rule, self.policy, *extra])


def _cells() -> dict[str, Cell]:
    """Every drafter under every rule that fits it and every policy, with and without truncation and a stop token."""
    cells = []
    for drafter, row in ROWS.items():
        for rule, policy in itertools.product(row.rules, POLICIES):
            # Three tokens to choose from cost ten times what two do: there, one token less is compared.
            length = row.length - policy.startswith("temperature")
            for threshold in sorted({0.0, row.threshold}):
                cell = Cell(drafter, policy, rule, threshold, prompt=row.prompt, length=length, rounds=row.rounds)
                cells += [cell, replace(cell, stop=(3,))] if policy == "mixed" else [cell]
    return {cell.name: cell for cell in cells}


CELLS = _cells()
# Released modes that are lossy by design know a temperature and nothing else.
LOSSY = {
    cell.name: cell
    for drafter, row in ROWS.items()
    for cell in (Cell(drafter, "temperature-1", rule, prompt=row.prompt, length=4) for rule in row.lossy)
}
# Seconds in all: one mixed policy for each drafter, and a truncated block. The others are for the long report.
SHORT = (
    "dspark/leviathan/mixed/truncated",
    *(f"{drafter}/{row.rules[0]}/mixed/stop" for drafter, row in ROWS.items()),
)


def session(cell: Cell, plant: Plant | None = None) -> Session:
    """The loop that a cell enumerates, with at most one state bug in one of its parts."""
    row = ROWS[cell.drafter]
    target = target_that_remembers(row.target)
    drafter = row.remembered(row.load(target, **({"threshold": cell.threshold} if cell.threshold else {})))
    stop = Stop(frozenset(cell.stop))
    play = Session(target, drafter, RULES[cell.rule], POLICIES[cell.policy], cell.length, stop)
    if plant:
        put(plant, attrgetter(plant.part)(play))
    return play


def put(plant: Plant, part: Any) -> None:
    """Make a part, or what it is made of, an object of the edited module."""
    edited = edited_module(plant.edit.module, [plant.edit])
    things = [x for x in (part, *vars(part).values()) if type(x).__module__ == plant.edit.module]
    if not things:
        raise ValueError(f"{plant.name}: nothing of a {type(part).__name__} comes from {plant.edit.module}")
    for thing in things:
        object.__setattr__(thing, "__class__", getattr(edited, type(thing).__name__))


def cell_law(cell: Cell, plant: Plant | None = None) -> LoopLaw:
    """The exact law of a cell's loop."""
    return Enumeration(session(cell, plant), cell.prompt).rounds(cell.rounds)


# --- what a cell is compared with ------------------------------------------------------------------------------------


def target_law(cell: Cell) -> Law:
    """The target's own joint law of the next tokens: whole sequences, no cache, none of the loop's code."""
    return exact.target_law(rows_of(cell), (), cell.length, cell.stop)


def completed(cell: Cell, found: LoopLaw) -> Law:
    """The loop's law of the same number of tokens; what the rounds did not reach is drawn from the target."""
    law: Law = {}
    for outcome, mass in found.law.items():
        law[outcome.out] = law.get(outcome.out, 0.0) + mass
    return exact.completed(law, rows_of(cell), (), cell.length, cell.stop)


def rows_of(cell: Cell) -> Any:
    """The target's row, in floats, after each output of a cell."""
    return partial(plain_row, target_of(cell.drafter), cell.policy, cell.prompt)


@cache
def plain_row(target: str, policy: str, prompt: Tokens, out: Tokens) -> tuple[float, ...]:
    """The target's row after `prompt + out`, float64. Refuses a policy whose cut is nearly a tie, or keeps over three.

    Two passes over one prefix differ by rounding, so a cut within CUT of a tie would be decided by the lottery of it.
    """
    model: Any = target_that_remembers(target).model
    with torch.no_grad(), Float64():
        logits: Tensor = model(input_ids=torch.tensor([prompt + out]), use_cache=False).logits[0, -1]
    row = POLICIES[policy](logits, prompt, out)
    kept = row > 0
    for tilt in (CUT, -CUT):
        moved = POLICIES[policy](torch.where(kept, logits - tilt, logits + tilt), prompt, out)
        if not torch.equal(moved > 0, kept):
            raise ValueError(f"{policy} after {prompt + out}: its cut is within {CUT} of a tie")
    if int(kept.sum()) > 3:
        raise ValueError(f"{policy} after {prompt + out}: {int(kept.sum())} tokens are left, and cells are made for 3")
    return tuple(row.tolist())


def mass_report(found: LoopLaw) -> dict[str, float]:
    """The probability that a history holds each event at least once."""
    mass = dict.fromkeys(("rejection", "bonus", "rollback over 1", "stop inside a block"), 0.0)
    for outcome, weight in found.law.items():
        mass["rejection"] += weight * any(accepted < drafted for drafted, accepted, _ in outcome.rounds)
        mass["bonus"] += weight * any(
            0 < drafted == accepted < emitted for drafted, accepted, emitted in outcome.rounds
        )
        mass["rollback over 1"] += weight * any(drafted - accepted > 1 for drafted, accepted, _ in outcome.rounds)
        # The last emitted token is an accepted draft, and the round had more to emit.
        inside = bool(outcome.rounds) and outcome.stopped and outcome.rounds[-1][2] <= outcome.rounds[-1][1]
        mass["stop inside a block"] += weight * inside
    return mass


# --- networks --------------------------------------------------------------------------------------------------------


def target_of(drafter: str) -> str:
    """The folder of the target that a drafter drafts for, under fixtures/."""
    return ROWS[drafter].target


def greedy_parts(drafter: str) -> tuple[Target, Drafter, Rule]:
    """Target, drafter and rule in float32, for the cells of greedy decoding."""
    target = load_target(FIXTURES / target_of(drafter), torch.float32)
    return target, ROWS[drafter].load(target), RULES[ROWS[drafter].rules[0]]
