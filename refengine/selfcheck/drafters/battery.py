"""The battery as findings: what the report, the command line and the tests show of the reference decoder.

Cells run in inference mode: no gradient is asked for, and without the bookkeeping they take four fifths of the time.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch

from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.loop import Stop, generate, plain
from refengine.decoder.protocols import Tokens
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline
from refengine.engine.rules import RULES
from refengine.exact.law import tv
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe
from refengine.report.step import Step
from refengine.selfcheck.drafters import peers
from refengine.selfcheck.drafters.bits import Alone, Heard, Listened
from refengine.selfcheck.drafters.checks import checks
from refengine.selfcheck.drafters.computed_from import digest_of
from refengine.selfcheck.drafters.laws.cells import (
    CELLS,
    EXACT,
    LOSSY,
    MOVED,
    SHORT,
    Cell,
    cell_law,
    completed,
    mass_report,
    target_law,
    target_of,
)
from refengine.selfcheck.drafters.laws.exact_law import LoopLaw
from refengine.selfcheck.drafters.planted_bugs import Plant
from refengine.selfcheck.drafters.published_loops import LOOPS, seed_loop
from refengine.selfcheck.drafters.table import ROWS, place
from refengine.source_tree import FIXTURES

COINS = Philox(0, torch.tensor([0]))  # greedy rows leave nothing to chance
SLOTS = 64  # of greedy decoding: the longest prompt, 32 tokens, and any draft after them
STOPS = 3  # of the tokens that a prompt produces, how many are declared stop tokens in turn
LOSSLESS = "Leviathan et al. 2023, Theorem 3.5; Sun et al. 2024, Theorem 2; here of drafter, rule and loop together"


def steps(full: bool = False) -> Iterator[Step]:
    """The battery in pieces, seconds each: the short one, or every cell."""
    if not FIXTURES.is_dir():
        yield Step("fixtures", no_fixtures)
        return
    for name in CELLS if full else SHORT:
        yield _step(f"exact law of {name}", CELLS[name].drafter, partial(law, name))
        yield _step(f"planted state bugs in {name}", CELLS[name].drafter, partial(planted, name))
    for name, cell in LOSSY.items():
        yield _step(f"exact law of {name}, lossy by design", cell.drafter, partial(lossy, name))
    for name in LOOPS:
        yield Step(
            f"exact law of {name}",
            partial(seed_loop, name),
            "loops",
            partial(digest_of, "published", LOOPS[name].cell.drafter),
        )
    for drafter in ROWS:
        yield _step(f"greedy decoding with {drafter}", drafter, partial(greedy_equality, drafter))
        for check, step in checks(drafter).items():
            yield _step(f"{check} of {drafter}", drafter, step)


def _step(name: str, drafter: str, run: Callable[[], list[Finding]]) -> Step:
    """Drafters of one checkpoint damage it once; drafters whose tests are in the same files run them once."""
    check, place = name.split(" of ")[0], ROWS[drafter].folder or "no checkpoint"
    if check == "agrees":
        place = "tests in " + " ".join(file.name for file in peers.files_of(drafter))
    return Step(name, run, place, partial(digest_of, check, drafter))


@torch.inference_mode()
def law(name: str) -> list[Finding]:
    """The exact law of one cell against the target's."""
    cell = CELLS[name]
    found = cell_law(cell)
    distance = tv(completed(cell, found), target_law(cell))
    good = distance <= EXACT and not found.mismatches
    mass = {event: Quantity(value=value, tolerance=1e-9) for event, value in mass_report(found).items()}
    return [
        Finding(
            id=f"decoder.{cell.drafter}/law/{name}",
            subject=f"refengine decoder, {cell.drafter}",
            claim=f"The real loop's exact joint law of {cell.length} tokens over {cell.rounds} rounds is the target's.",
            source=LOSSLESS,
            verdict="consistent" if good else "violated",
            method=f"exact law in float64, {found.runs} rounds enumerated, TV within {EXACT}",
            recipe=_recipe("law", name=name),
            numbers={
                "tv": Quantity(value=distance, tolerance=EXACT),
                "rounds enumerated": found.runs,
                "live states equal to a recompute": found.compared - len(found.mismatches),
                "live states that differ": len(found.mismatches),
                **{f"mass with {event}": quantity for event, quantity in mass.items()},
            },
            magnitude=None if good else _magnitude(distance),
            notes=[f"after {list(out)}: {what}" for out, what in found.mismatches[:3]],
            tables=place(cell.drafter, "law"),
        )
    ]


@torch.inference_mode()
def lossy(name: str) -> list[Finding]:
    """The exact distance from the target's law of a released mode that changes it by design."""
    cell = LOSSY[name]
    found = cell_law(cell)
    distance = tv(completed(cell, found), target_law(cell))
    good = distance > MOVED and not found.mismatches
    return [
        Finding(
            id=f"decoder.{cell.drafter}/lossy/{name}",
            subject=f"refengine decoder, {cell.drafter} in its released mode {cell.rule}",
            claim=f"The mode is lossy by design: its exact law of {cell.length} tokens is not the target's.",
            source="Cai et al. 2024, section 3.1.2; FasterDecoding/Medusa e2a5d20, evaluate_posterior",
            verdict="consistent" if good else "violated",
            method=f"exact law in float64, {found.runs} rounds enumerated, TV beyond {MOVED}",
            recipe=_recipe("lossy", name=name),
            numbers={
                "tv": Quantity(value=distance, tolerance=1e-9),
                "rounds enumerated": found.runs,
                "live states that differ": len(found.mismatches),
            },
            magnitude=_magnitude(distance),
        )
    ]


@torch.inference_mode()
def planted(name: str) -> list[Finding]:
    """Every state bug that can show in one cell, each against the cell's clean law; one round fewer shows them all.

    With a bug in place no histories are merged, so cells with three tokens to choose from compare three tokens only; so
    do the others where that shows the bug.
    """
    longest = replace(CELLS[name], rounds=CELLS[name].rounds - 1, length=5 if CELLS[name].length >= 5 else 3)
    cells = [replace(longest, length=n) for n in sorted({3, longest.length})]
    clean = cache(lambda cell: (cell_law(cell), target_law(cell)))
    return [_planted(name, cells, plant, clean) for plant in ROWS[longest.drafter].plants if _shows(plant, longest)]


def _shows(plant: Plant, cell: Cell) -> bool:
    return cell.length >= plant.length and (cell.threshold > 0 or not plant.truncated)


def _planted(
    name: str, cells: list[Cell], plant: Plant, clean: Callable[[Cell], tuple[LoopLaw, dict[Any, float]]]
) -> Finding:
    """cells: the same one with more and more tokens compared, of which the first that shows the bug is reported."""
    for cell in (cell for cell in cells if _shows(plant, cell)):
        found, (law, wanted) = cell_law(cell, plant), clean(cell)
        moved, tokens = tv(found.law, law.law), tv(completed(cell, found), wanted)
        if moved > MOVED and (plant.changes == "rounds" or tokens > MOVED):
            break
    return Finding(
        id=f"decoder.{cell.drafter}/planted/{name}/{plant.name}",
        subject=f"refengine decoder, {cell.drafter}, with a state bug planted: {plant.name}",
        claim="The exact law of tokens, drafted and accepted counts is that of the loop without the bug.",
        source="negative control",
        role="control",
        verdict="violated" if moved > MOVED else "consistent",
        method=f"exact law in float64, {found.runs} rounds enumerated, violated beyond {MOVED}",
        recipe=_recipe("planted", name=name),
        numbers={
            "tokens compared": cell.length,
            "tv of tokens and rounds": Quantity(value=moved, tolerance=1e-9),
            "tv of tokens": Quantity(value=tokens, tolerance=1e-9),
            "live states that differ from a recompute": len(found.mismatches),
        },
        magnitude=_magnitude(moved),
        diagnosis=plant.diagnosis,
    )


@torch.inference_mode()
def greedy_equality(drafter: str) -> list[Finding]:
    """float32 greedy decoding of every fixture prompt in the bitwise mode, and where a stop token ends it."""
    row, heard = ROWS[drafter], Heard(alone(target_of(drafter)))
    judge, differing = Listened(load_target(FIXTURES / row.target, torch.float32, slots=SLOTS), heard), []
    drafting, rule = row.load(judge), RULES[row.rules[0]]
    prompts = json.loads((FIXTURES / target_of(drafter)).with_name("prompts.json").read_text())
    for prompt in (tuple(prompt["prompt"]) for prompt in prompts):
        wanted = plainly(target_of(drafter), prompt)
        produced = sorted(set(wanted))
        for stop in (Stop(), *(Stop(frozenset({token})) for token in produced[:: -(-len(produced) // STOPS)])):
            ours = generate(judge, drafting, rule, pipeline(greedy()), prompt, 32, COINS, stop).tokens
            if ours != until(stop, wanted):
                differing.append(f"prompt {prompt}, stop tokens {sorted(stop.tokens)}: {list(ours)}")
    differing += [f"other bits after {text}" for text in heard.differing]
    return [
        Finding(
            id=f"decoder.{drafter}/greedy",
            subject=f"refengine decoder, {drafter}",
            claim="float32 greedy output, and the logits of every row that is run on the way, rejected drafts too, "
            "equal plain greedy decoding's bit for bit; output stops where that stops.",
            source="Leviathan et al. 2023, section 2.3 with a one-hot target row",
            verdict="violated" if differing else "consistent",
            method="equality of tokens and of bits in the bitwise mode, every text held against itself run alone",
            recipe=_recipe("greedy_equality", drafter=drafter),
            numbers={"prompts": len(prompts), "rows compared": heard.compared},
            notes=differing[:3],
            tables=place(drafter, "greedy"),
        )
    ]


@cache
def plainly(target: str, prompt: Tokens) -> Tokens:
    """32 tokens of plain greedy decoding, on a target of its own."""
    own = load_target(FIXTURES / target, torch.float32, slots=SLOTS)
    return plain(own, pipeline(greedy()), prompt, 32, COINS)


@cache
def alone(target: str) -> Alone:
    """Logits of texts on a target that runs one token a pass."""
    return Alone(load_target(FIXTURES / target, torch.float32, slots=SLOTS))


def until(stop: Stop, tokens: Tokens) -> Tokens:
    """Tokens up to the first stop token, which is kept."""
    ends = [place for place, token in enumerate(tokens, 1) if token in stop.tokens]
    return tokens[: ends[0]] if ends else tokens


def no_fixtures() -> list[Finding]:
    """What stands in the report where the fixtures were not shipped."""
    return [
        Finding(
            id="decoder/fixtures",
            subject="refengine decoder",
            claim="The real loop's exact joint law is the target's.",
            source=LOSSLESS,
            verdict="not tested",
            reason="the tiny checkpoints are in the repository's fixtures/ folder, which no installed package has",
            method="exact law",
            recipe=_recipe("no_fixtures"),
        )
    ]


def _recipe(function: str, **arguments: str) -> Recipe:
    return Recipe(function=f"{__name__}:{function}", arguments=arguments)


def _magnitude(distance: float) -> Magnitude:
    return Magnitude(tv=Quantity(value=distance, tolerance=1e-9), exact=True)
