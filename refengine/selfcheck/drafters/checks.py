"""The checks of a row of the table as findings: loading, peers, recompute, q-contract, acceptance, self-draft.

The exact laws, the planted bugs and greedy decoding are in `battery.py`.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import msgspec
import torch
from torch import Tensor

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import Rule, Stop, nodes
from refengine.engine.block import ROOT, Block, Round
from refengine.engine.coins import Coins, Philox
from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.drafters import contract, peers
from refengine.selfcheck.drafters.damage import Strictness, strictness
from refengine.selfcheck.drafters.laws.cells import CELLS, EXACT, SHORT, Cell, session, target_of
from refengine.selfcheck.drafters.laws.exact_law import off_scratch
from refengine.selfcheck.drafters.row import CHECKS
from refengine.selfcheck.drafters.table import ROWS, place
from refengine.source_tree import FIXTURES, IN_SOURCE_TREE, NOT_SHIPPED

PATTERNS, ROUNDS = 12, 6  # forced accept patterns from the cell's prompt, and rounds of each


def checks(drafter: str) -> dict[str, Callable[[], list[Finding]]]:
    """The checks of one row by name."""
    every: dict[str, Callable[[str], list[Finding]]] = {
        "loads": loads,
        "agrees": agrees,
        "incremental": incremental,
        "q-contract": q_contract,
        "acceptance": acceptance,
        "self-draft": self_draft,
    }
    return {name: partial(check, drafter) for name, check in every.items()}


def cell_of(drafter: str) -> Cell:
    """The cell that stands for a drafter."""
    return next(CELLS[name] for name in SHORT if CELLS[name].drafter == drafter)


def loads(drafter: str) -> list[Finding]:
    """Every tensor of the tiny checkpoint damaged in turn."""
    if "loads" in ROWS[drafter].not_tested:
        return [_finding(drafter, "loads", "damage of every tensor in turn")]
    found = damaged(ROWS[drafter].folder, target_of(drafter))
    return [
        _finding(
            drafter,
            "loads",
            "a copy without each tensor, with one of another shape, of another dtype, one too many, of zeros, swapped",
            {
                "tensors": found.tensors,
                "refused by name": found.refused,
                "implied by another": found.implied,
                "changes that showed": found.moved,
            },
            found.unnoticed,
        )
    ]


@cache
def damaged(folder: str, target: str) -> Strictness:
    """What a damaged checkpoint does; once where drafters share one. It may hold its target itself."""
    prompt = next(row.prompt for row in ROWS.values() if row.folder == folder)
    judge = None if folder == target else load_target(FIXTURES / target, torch.float64)
    return strictness(FIXTURES / folder, judge, prompt)


def agrees(drafter: str) -> list[Finding]:
    """The tests against recordings of the official code, or against a live peer, in a process of their own."""
    if "agrees" in ROWS[drafter].not_tested or not IN_SOURCE_TREE:
        return [_finding(drafter, "agrees", "tests against recordings of independent code")]
    outcomes = peers.outcomes(peers.files_of(drafter)).get(drafter, {})
    files = sorted({name.partition("::")[0] for name in outcomes})
    missing = [] if "passed" in outcomes.values() else [f"no test that is marked peer({drafter!r}) ran"]
    return [
        _finding(
            drafter,
            "agrees",
            f"tests of {', '.join(files)} in properties/drafters, run in a process of their own",
            {"tests passed": list(outcomes.values()).count("passed"), "tests": len(outcomes)},
            [f"{name} {said}" for name, said in outcomes.items() if said != "passed"] + missing,
        )
    ]


@torch.inference_mode()
def incremental(drafter: str) -> list[Finding]:
    """Rounds whose outcome is forced, and the whole state after each against a recompute from scratch."""
    source, compared, differing = random.Random(0), 0, []
    play = replace(session(cell_of(drafter)), max_new_tokens=10**6, stop=Stop())
    coins = Philox(3, torch.tensor([0]))
    for _ in range(PATTERNS):
        prompt = tuple(source.randrange(7) for _ in range(source.randint(1, 8)))
        play.begin(prompt, coins)
        for _ in range(ROUNDS):
            turns = tuple(source.randrange(3) for _ in range(source.randrange(4)))
            play.rule = along(turns, source.randrange(7))
            play.play(coins)
            compared += 1
            if differs := off_scratch(play):
                differing.append(f"after {list(prompt)} {list(play.out)}: {differs}")
    method = f"{PATTERNS} prompts, {ROUNDS} rounds of a forced outcome each, every entry of the state compared"
    return [_finding(drafter, "incremental", method, {"states compared": compared}, differing)]


def along(turns: tuple[int, ...], token: int) -> Rule:
    """A rule that accepts a path whatever p says, child number `turns[d]` at depth d, and then emits `token`."""

    def rule(p: Tensor, block: Block, coins: Coins) -> Round:
        tokens, parents = nodes(block)
        path: list[int] = []
        for turn in turns:
            children = [node for node, parent in enumerate(parents) if parent == (path[-1] if path else ROOT)]
            if not children:
                break
            path.append(children[turn % len(children)])
        emitted = torch.tensor([[*(tokens[node] for node in path), token]])
        return Round(emitted, torch.tensor(path, dtype=torch.long)[None], torch.tensor([len(path) + 1]))

    return rule


@torch.inference_mode()
def q_contract(drafter: str) -> list[Finding]:
    """The law of the draws against the rows that are reported with them."""
    found = contract.q_contract(cell_of(drafter))
    numbers = {"blocks enumerated": found.blocks, "largest deviation": Quantity(value=found.worst, tolerance=EXACT)}
    method = f"{contract.VISITED} prefixes, {len(contract.PROMISED)} policies, every draw enumerated, within {EXACT}"
    return [_finding(drafter, "q-contract", method, numbers, _doubts(found))]


@torch.inference_mode()
def acceptance(drafter: str) -> list[Finding]:
    """Accepted tokens of a round, enumerated, against the formula on the rows of p and q."""
    found, seen, promised = contract.acceptance(cell_of(drafter))
    numbers = {
        "accepted in a round": Quantity(value=seen.mean, tolerance=1e-9),
        "by the formula": Quantity(value=promised.mean, tolerance=1e-9),
        "tokens of a pass": Quantity(value=1 + seen.mean, tolerance=1e-9),
    }
    method = f"{contract.VISITED} prefixes, every round enumerated, each depth of the block within {EXACT}"
    made = _finding(drafter, "acceptance", method, numbers, _doubts(found))
    depths = [depth for depth, judged in enumerate(seen.judged) if judged > EXACT]
    drawn = {
        "position": [depth + 1 for depth in depths],
        "expected": [promised.rate(depth) for depth in depths],
        "observed": [seen.rate(depth) for depth in depths],
    }
    return [msgspec.structs.replace(made, tables=made.tables | ({"acceptance": drawn} if depths else {}))]


@torch.inference_mode()
def self_draft(drafter: str) -> list[Finding]:
    """Everything is accepted where the drafter draws from the target's own rows."""
    if "self-draft" in ROWS[drafter].not_tested:
        return [_finding(drafter, "self-draft", "the target's rows in place of the drafter's")]
    found = contract.self_draft(cell_of(drafter))
    numbers = {"blocks enumerated": found.blocks if found else 0}
    doubts = _doubts(found) if found else ["its candidates are not drawn from rows"]
    return [_finding(drafter, "self-draft", "the target's rows in place of the drafter's", numbers, doubts)]


def _doubts(found: contract.Contract) -> list[str]:
    return [str(found.witness)] if found.witness else []


def _finding(
    drafter: str, check: str, method: str, numbers: dict[str, Any] | None = None, doubts: list[str] | None = None
) -> Finding:
    """One cell of the table; without numbers it is not tested."""
    return Finding(
        id=f"decoder.{drafter}/{check}",
        subject=f"refengine decoder, {drafter}",
        claim=f"{CHECKS[check][0].upper()}{CHECKS[check][1:]}.",
        source="Leviathan et al. 2023, section 3, for every drafter",
        verdict="not tested" if numbers is None else "violated" if doubts else "consistent",
        reason=ROWS[drafter].not_tested.get(check, NOT_SHIPPED) if numbers is None else "",
        method=method,
        recipe=Recipe(function=f"{__name__}:{check.replace('-', '_')}", arguments={"drafter": drafter}),
        numbers=numbers or {},
        notes=(doubts or [])[:5],
        tables=place(drafter, check),
    )
