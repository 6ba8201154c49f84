"""The engine is held to exact in three ways: enumerated laws, decision boundaries, and full midpoint grids."""

import inspect
import math
import random
from fractions import Fraction
from itertools import product

import pytest
import torch

from properties.helpers.engine_cases import TWINS, Case, case, rounds, tensors
from refengine.engine.coins import Branching, Recorded
from refengine.exact.chance import ACCEPT_BITS, Decision, Enumerate, Record, Site, Uniforms, runs
from refengine.exact.law import law

SEEDS = range(36)
GRID = 1 << ACCEPT_BITS


@pytest.mark.parametrize("name", TWINS)
def test_enumerated_engine_is_the_exact_law_decision_by_decision(name: str) -> None:
    """Kills any engine rule whose site, order, odds, path or tokens differ from the definition on dyadic rows."""
    twins = TWINS[name]
    for seed in SEEDS:
        c = case(twins, random.Random(f"law/{name}/{seed}"), bits=4)
        p, block = tensors([c])

        def engine(chance: Enumerate) -> object:
            return rounds(twins.run(p, block, Branching(chance, rational=True)))[0]  # noqa: B023

        def exact(chance: Enumerate) -> object:
            return twins.define(c.p, c.block, chance)  # noqa: B023

        assert [summary(run) for run in runs(engine)] == [summary(run) for run in runs(exact)], (seed, c)


def summary(run: tuple[object, Fraction, list[Decision]]) -> object:
    """A run without the scale of its odds, which the engine carries undivided."""
    result, weight, trace = run
    return result, weight, [(d.site, d.outcome) for d in trace]


@pytest.mark.parametrize("name", TWINS)
def test_same_tokens_just_below_on_and_above_every_boundary(name: str) -> None:
    """Kills `<=` for `<`, a total that is off by one bit, and a comparison made in float32."""
    twins = TWINS[name]
    for seed in SEEDS:
        c = case(twins, random.Random(f"boundary/{name}/{seed}"), bits=4)
        lanes = boundary_tables(twins, c)
        table = {site: torch.tensor([float(lane[site]) for lane in lanes], dtype=torch.float64) for site in lanes[0]}
        p, block = tensors([c] * len(lanes))
        got = rounds(twins.run(p, block, Recorded(table)))
        assert got == [twins.define(c.p, c.block, Uniforms(lane)) for lane in lanes], (seed, c)


def boundary_tables(twins: object, c: Case) -> list[dict[Site, Fraction]]:
    """For every decision of every run: the uniforms that lead to it, with its own at the neighbours of each edge."""
    everywhere = {site: Fraction(1, 2) for site in every_site(len(c.block.tokens))}
    out = [everywhere]
    for _, _, trace in runs(lambda chance: twins.define(c.p, c.block, chance)):
        reached = dict(everywhere)
        for decision in trace:
            edges = edges_of(decision)
            out += [reached | {decision.site: u} for edge in edges for u in neighbours(edge)]
            reached[decision.site] = middle_of(decision)
    return [dict(t) for t in {tuple(sorted(t.items(), key=str)) for t in out}]


def every_site(n: int) -> list[Site]:
    """All sites that any rule may ask about, idle lanes included."""
    emit = [("emit", depth) for depth in range(n + 1)]
    accept = [("accept", depth) for depth in range(n)]
    judged = [("accept", depth, j) for depth in range(n) for j in range(n)]
    return [*emit, *accept, *judged, *(("agree", depth, leaf) for depth in range(n) for leaf in range(n))]


def edges_of(decision: Decision) -> list[Fraction]:
    """Where the outcome changes, as uniforms."""
    if len(decision.odds) == 2 and isinstance(decision.outcome, bool):
        num, den = decision.odds
        return [Fraction(0), min(Fraction(num, den), Fraction(1)) if den else Fraction(0)]
    total, below = sum(decision.odds), Fraction(0)
    return [Fraction(0), *((below := below + w) / total for w in decision.odds)]


def middle_of(decision: Decision) -> Fraction:
    """A uniform that gives this decision's outcome, far from every edge."""
    edges = edges_of(decision)
    if isinstance(decision.outcome, bool):
        return edges[1] / 2 if decision.outcome else (edges[1] + 1) / 2
    return (edges[decision.outcome] + edges[decision.outcome + 1]) / 2


def neighbours(edge: Fraction) -> list[Fraction]:
    """The points of the 24-bit grid just below, on (where the edge is on the grid) and just above."""
    at = math.floor(edge * GRID)
    return [Fraction(k, GRID) for k in (at - 1, at, at + 1) if 0 <= k < GRID]


@pytest.mark.parametrize("name", TWINS)
def test_midpoint_grid_counts_are_the_law(name: str) -> None:
    """Kills two decisions sharing one uniform, and any lane that leaks into another: one batched call, exact counts."""
    twins = TWINS[name]
    tried, outcomes = 0, 0
    for seed in range(200):
        c = case(twins, random.Random(f"grid/{name}/{seed}"), bits=2)
        exact = law(lambda chance: twins.define(c.p, c.block, chance))  # noqa: B023
        axes, mesh = axes_and_mesh(twins, c)
        outcomes = max(outcomes, len(exact))
        if mesh ** len(axes) > 20_000 or len(exact) < 2:
            continue
        tried += 1
        points = list(product(range(mesh), repeat=len(axes)))
        uniforms = (torch.tensor(points, dtype=torch.float64).view(len(points), len(axes)) + 0.5) / mesh
        table = {site: uniforms[:, axes[site]] if site in axes else 0.5 for site in every_site(len(c.block.tokens))}
        p, block = tensors([c] * len(points))
        got = rounds(twins.run(p, block, Recorded(table)))
        counts = {result: Fraction(got.count(result), len(got)) for result in set(got)}
        assert counts == exact, (seed, c)
        if tried == 6:
            return
    assert outcomes == 1, "the seeds gave too few cases of a feasible size"  # but for a rule that asks no coin


def axes_and_mesh(twins: object, c: Case) -> tuple[dict[Site, int], int]:
    """One axis per site that is ever asked about, and a mesh so fine that every edge lies on a grid line."""
    axes: dict[Site, int] = {}
    mesh = 1
    for _, _, trace in runs(lambda chance: twins.define(c.p, c.block, chance)):
        for decision in trace:
            axes.setdefault(decision.site, len(axes))
            mesh = math.lcm(mesh, *(edge.denominator for edge in edges_of(decision)))
    return axes, mesh


def test_the_engine_asks_for_exactly_the_sites_of_the_definition() -> None:
    """Kills a rule that draws a coin it does not need: with strict uniforms none may be missing or left over."""
    for name, twins in TWINS.items():
        for seed in range(8):
            c = case(twins, random.Random(f"sites/{name}/{seed}"), bits=4)
            for _, _, trace in runs(lambda chance: twins.define(c.p, c.block, Record(chance))):  # noqa: B023
                coins = Recorded({d.site: middle_of(d) for d in trace})
                p, block = tensors([c])
                assert rounds(twins.run(p, block, coins))[0] == twins.define(
                    c.p, c.block, Uniforms({d.site: middle_of(d) for d in trace})
                )
                coins.finish()


@pytest.mark.parametrize("name", TWINS)
def test_both_texts_have_the_same_defaults(name: str) -> None:
    """Kills a setting whose default differs between the texts: a caller who names none would compare two rules."""
    exact, engine = (inspect.signature(f).parameters.values() for f in (TWINS[name].exact, TWINS[name].engine))
    defaults = [[float(p.default) for p in text if p.default is not p.empty] for text in (exact, engine)]
    assert defaults[0] == defaults[1]
