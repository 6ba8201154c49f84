"""The engine is held to exact in three ways: enumerated laws, decision boundaries, and full midpoint grids."""

import inspect
import math
from fractions import Fraction
from itertools import product

import pytest
import torch

from refengine.bugs.checks import twins
from refengine.bugs.checks.batches import EVERY, Case, Pair, cases
from refengine.engine.coins import Recorded
from refengine.exact.chance import Record, Site, Uniforms, runs
from refengine.exact.law import law

every_pair = pytest.mark.parametrize("pair", EVERY, ids=lambda pair: pair.name)


@every_pair
def test_enumerated_engine_is_the_exact_law_decision_by_decision(pair: Pair) -> None:
    """Kills any engine rule whose site, order, odds, path or tokens differ from the definition on dyadic rows."""
    assert twins.law((pair,)) is None


@every_pair
def test_same_tokens_just_below_on_and_above_every_boundary(pair: Pair) -> None:
    """Kills `<=` for `<`, a total that is off by one bit, and a comparison made in float32."""
    assert twins.edges((pair,)) is None


def every_site(n: int) -> list[Site]:
    """All sites that any rule may ask about, idle lanes included."""
    emit = [("emit", depth) for depth in range(n + 1)]
    accept = [("accept", depth) for depth in range(n)]
    judged = [("accept", depth, j) for depth in range(n) for j in range(n)]
    return [*emit, *accept, *judged, *(("agree", depth, leaf) for depth in range(n) for leaf in range(n))]


@every_pair
def test_midpoint_grid_counts_are_the_law(pair: Pair) -> None:
    """Kills two decisions sharing one uniform, and any lane that leaks into another: one batched call, exact counts."""
    tried, outcomes = 0, 0
    every = cases(pair, 12, bits=2)
    for case in (case for i in range(12) for case in every[i::12]):  # of every shape one, before a second of any
        exact = law(lambda chance: pair.define(case, chance))  # noqa: B023
        axes, mesh = axes_and_mesh(pair, case)
        outcomes = max(outcomes, len(exact))
        if mesh ** len(axes) > 5_000 or len(exact) < 2:
            continue
        tried += 1
        points = list(product(range(mesh), repeat=len(axes)))
        uniforms = (torch.tensor(points, dtype=torch.float64).view(len(points), len(axes)) + 0.5) / mesh
        table = {site: uniforms[:, axes[site]] if site in axes else 0.5 for site in every_site(len(case.block.tokens))}
        got = pair.run([case] * len(points), Recorded(table))
        assert {result: Fraction(got.count(result), len(got)) for result in set(got)} == exact, case
        if tried == 6:
            return
    assert outcomes == 1, "there are too few cases of a feasible size"  # but for a rule that asks no coin


def axes_and_mesh(pair: Pair, case: Case) -> tuple[dict[Site, int], int]:
    """One axis per site that is ever asked about, and a mesh so fine that every edge lies on a grid line."""
    axes: dict[Site, int] = {}
    mesh = 1
    for _, _, trace in runs(lambda chance: pair.define(case, chance)):
        for decision in trace:
            axes.setdefault(decision.site, len(axes))
            mesh = math.lcm(mesh, *(edge.denominator for edge in twins.edges_of(decision)))
    return axes, mesh


@every_pair
def test_the_engine_asks_for_exactly_the_sites_of_the_definition(pair: Pair) -> None:
    """Kills a rule that draws a coin it does not need: with strict uniforms none may be missing or left over."""
    for case in cases(pair, 1, bits=4):
        for want, _, trace in runs(lambda chance: pair.define(case, Record(chance))):  # noqa: B023
            table = {d.site: sum(twins.piece(twins.edges_of(d), d)) / 2 for d in trace}
            coins = Recorded(table)
            assert pair.run([case], coins) == [want] == [pair.define(case, Uniforms(table))]
            coins.finish()


@every_pair
def test_both_texts_have_the_same_defaults(pair: Pair) -> None:
    """Kills a setting whose default differs between the texts: a caller who names none would compare two rules."""
    exact, engine = (inspect.signature(f).parameters.values() for f in (pair.exact, pair.batched))
    defaults = [[float(p.default) for p in text if p.default is not p.empty] for text in (exact, engine)]
    assert defaults[0] == defaults[1]
