"""Checks of the batched rules against the definition: enumerated laws, every edge of every decision, mixed batches."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import torch

from refengine.bugs.checks.batches import HALF, PAIRS, Case, Pair, cases
from refengine.bugs.checks.violation import Violation, text
from refengine.engine.coins import Branching, Philox, Recorded
from refengine.exact.chance import Decision, Uniforms, runs

GRID = 1 << 24


def law(pairs: Sequence[Pair] = PAIRS) -> Violation | None:
    """Enumerated through Branching coins, a batched rule takes the decisions of the exact one and emits the same."""
    for pair in pairs:
        for case in cases(pair, 2):
            want = summary(lambda chance, p=pair, c=case: p.define(c, chance))
            have = summary(lambda chance, p=pair, c=case: p.run([c], Branching(chance, rational=True))[0])
            for mine, theirs in itertools.zip_longest(have, want):
                if mine != theirs:
                    return Violation(f"{pair.name}: {mine} where the definition has {theirs}", witness(pair, case))
    return None


def summary(program: Any) -> list[Any]:
    """Every run without the scale of its odds, which the batched text carries undivided."""
    return [(result, weight, [(d.site, d.outcome) for d in trace]) for result, weight, trace in runs(program)]


def witness(pair: Pair, case: Case, **more: Any) -> dict[str, Any]:
    rows = {"p": [text(row) for row in case.p], "q": [text(row or ()) for row in case.block.q]}
    return {"rule": pair.name, "tokens": text(case.block.tokens), "parents": text(case.block.parents), **rows, **more}


def edges(pairs: Sequence[Pair] = PAIRS) -> Violation | None:
    """With recorded uniforms just below, on and above every edge of every decision: the definition's tokens.

    All tables of all cases of a rule are lanes of one batch, so that lanes of different shapes stand side by side.
    """
    for pair in pairs:
        pool: list[tuple[Case, dict[Any, Fraction]]] = []
        for case in cases(pair, 2, bits=4):
            pool += [(case, table) for table in itertools.islice(tables(pair, case), 40)]
        sites = {site for _, table in pool for site in table}
        columns = {s: torch.tensor([float(t.get(s, HALF)) for _, t in pool], dtype=torch.float64) for s in sites}
        have = pair.run([case for case, _ in pool], Recorded(columns))
        for (case, table), got in zip(pool, have, strict=True):
            want = pair.define(case, Uniforms(table))
            if got != want:
                shown = {text(site): str(u) for site, u in table.items() if u != HALF}
                return Violation(f"{pair.name}: {got}, not {want}, at an edge", witness(pair, case, uniforms=shown))
    return None


def tables(pair: Pair, case: Case) -> Iterator[dict[Any, Fraction]]:
    """For every decision of every run: the uniforms that lead to it, with its own beside each of its edges."""
    n = range(len(case.block.tokens) + 1)
    middle: dict[Any, Fraction] = {(kind, d): HALF for kind in ("accept", "emit") for d in n}
    middle |= {(kind, d, j): HALF for kind in ("accept", "agree") for d in n for j in n}
    yield middle
    for _, _, trace in runs(lambda chance: pair.define(case, chance)):
        reached = dict(middle)
        for decision in trace:
            cuts = edges_of(decision)
            for cut in cuts:
                at = math.floor(cut * GRID)
                for k in (at - 1, at, at + 1):
                    if 0 <= k < GRID:
                        yield reached | {decision.site: Fraction(k, GRID)}
            low, high = piece(cuts, decision)
            reached[decision.site] = (low + high) / 2


def edges_of(decision: Decision) -> list[Fraction]:
    """Where the outcome changes, from 0 to 1."""
    if isinstance(decision.outcome, bool):
        num, den = decision.odds
        return [Fraction(0), min(Fraction(1), Fraction(num) / den) if den else Fraction(int(num > 0)), Fraction(1)]
    return [Fraction(0), *(Fraction(c) / sum(decision.odds) for c in itertools.accumulate(decision.odds))]


def piece(cuts: list[Fraction], decision: Decision) -> tuple[Fraction, Fraction]:
    number = (0 if decision.outcome else 1) if isinstance(decision.outcome, bool) else decision.outcome
    return cuts[number], cuts[number + 1]


def company(pairs: Sequence[Pair] = PAIRS) -> Violation | None:
    """A lane comes out alike alone and in any batch, whatever its place: 24 lanes of every shape, Philox coins."""
    for pair in pairs:
        chosen = (cases(pair, 4, bits=5) * 2)[:24]
        requests = torch.arange(100, 100 + len(chosen))
        together = pair.run(chosen, Philox(7, requests))
        for lane, case in enumerate(chosen):
            alone = pair.run([case], Philox(7, requests[lane : lane + 1]))[0]
            if alone != together[lane]:
                what = f"{pair.name}: lane {lane} of {len(chosen)} gives {together[lane]}, alone {alone}"
                return Violation(what, witness(pair, case, lane=lane))
        if len(set(together)) == 1 and pair.drawn:
            return Violation(f"{pair.name}: every request comes out the same", {})
    return None
