"""Laws of what stands around the exact rules: drafters on tables, truncation, merged laws, hostile tables, vectors.

They stand in `every.py` beside the others.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from refengine.decoder.protocols import Tokens
from refengine.exact import drafters, merged
from refengine.exact.block import ROOT, Block, target_rows
from refengine.exact.card import Card
from refengine.exact.chance import Shifted, accept_below, choose_below, runs
from refengine.exact.law import completed, law
from refengine.exact.row import overlap
from refengine.exact.rules.truncation import causal, retrospective, stopping
from refengine.exact.tables import tables
from refengine.exact.vectors import all_sites, edge
from refengine.strategies import Case, World

ONE_COIN = 'a chain rule judges node i at ("accept", i), a tree rule node j at ("accept", depth, j): one coin a node'


def a_table_drafter_draws_what_it_says(world: World, prompt: Tokens) -> None:
    """As many candidates after every node as asked for, or as there are; each with the row that it was drawn from, and
    with the site; every block as often as its rows say."""
    for block, weight, trace in runs(lambda chance: world.draft(prompt, chance)):
        assert block.sites == tuple(step.site for step in trace)
        claimed = Fraction(1)
        for node in range(ROOT, len(block.tokens)):
            row, children = world.draft_row(prompt + block.path(node)), block.children(node)
            depth, left = len(block.path(node)), list(row)
            asked = world.where[depth] if depth < len(world.where) else 0
            assert len(children) == (min(asked, sum(x > 0 for x in row)) if world.drawn == "distinct" else asked)
            for child in children:
                assert block.q[child] == row
                claimed *= left[block.tokens[child]] / sum(left)
                if world.drawn == "distinct":
                    left[block.tokens[child]] = Fraction(0)
        assert weight == claimed


def a_truncated_draft_ends_where_it_is_said(world: World, prompt: Tokens, sixteenths: int, gamma: int) -> None:
    """Before the first place of little confidence, behind the first last token, or at the length that promises most."""
    limit, cost = Fraction(sixteenths, 16), [1 + n * Fraction(sixteenths, 16) for n in range(gamma + 1)]

    def sure(prefix: Tokens) -> Fraction:
        return world.target(prefix)[0]

    def ends(block: Block) -> Iterator[Tokens]:
        return (prompt + block.tokens[:k] for k in range(len(block.tokens) + 1))

    for block, *_ in runs(lambda chance: causal(world.draft_row, sure, limit, gamma)(prompt, chance)):
        *before, end = [sure(prefix) < limit for prefix in ends(block)]
        assert not any(before)
        assert end or len(block.tokens) == gamma
    for block, *_ in runs(lambda chance: stopping(world.draft_row, lambda p: sure(p) < limit, gamma)(prompt, chance)):
        if block.tokens:
            *before, end = [sure(prefix) < limit for prefix in ends(block)][1:]
            assert not any(before)
            assert end or len(block.tokens) == gamma
        assert block.tokens or not gamma
    for block, _, trace in runs(lambda chance: retrospective(world.draft_row, sure, cost, gamma)(prompt, chance)):
        whole = prompt + tuple(int(step.outcome) for step in trace)
        assert len(whole) == len(prompt) + gamma
        sures = [sure(whole[: len(prompt) + k]) for k in range(gamma)]
        survive = [math.prod(sures[:k], start=Fraction(1)) for k in range(gamma + 1)]
        speed = [sum(survive[: n + 1]) / cost[n] for n in range(gamma + 1)]
        assert prompt + block.tokens == whole[: len(prompt) + speed.index(max(speed))]
        assert block.q == tuple(world.draft_row(whole[: len(prompt) + k]) for k in range(len(block.tokens)))


def merged_laws_are_those_of_the_walk(
    card: Card, world: World, prompt: Tokens, memory: int | None, length: int
) -> None:
    """Two rounds, cut and completed, with states merged by what rows look at, and path by path."""
    way = (
        "sampled_chain"
        if set(world.where) <= {1}
        else f"{'iid' if world.drawn == 'iid' else 'without_replacement'}_tree"
    )
    shape: Any = len(world.where) if way == "sampled_chain" else world.where
    loop = merged.Rounds(world.target, world.draft_row, way, shape, card.rule, memory)
    draft = getattr(drafters, way)(lambda prefix: world.draft_row(loop.seen(prefix)), shape)

    def program(chance: Any) -> Tokens:
        out = prompt
        for _ in range(2):
            here = Shifted(chance, len(out))
            block = draft(out, here)
            out += card.rule(target_rows(loop.plain, out, block), block, here).tokens
        return out[len(prompt) :]

    walked = law(program)
    assert loop.law(prompt, 2, length) == law(lambda chance: program(chance)[:length])
    assert loop.completed(prompt, 2, length) == completed(walked, loop.plain, prompt, length)


def hostile_tables_are_of_their_family(family: str, vocabulary: int, seed: int, prefix: Tokens) -> None:
    target, draft = tables(family, vocabulary, seed)
    p, q = target(prefix), draft(prefix)
    again = tables(family, vocabulary, seed)
    assert (p, q) == (again[0](prefix), again[1](prefix))
    for row in (p, q):
        assert len(row) == vocabulary
        assert sum(row) == 1
        assert min(row) >= 0
    is_so = {
        "generic": min(*p, *q) > 0,
        "zeros": True,
        "equal": p == q,
        "disjoint": overlap(p, q) == 0,
        "reversed": q == p[::-1],
        "one-hot target": max(p) == 1 and min(q) > 0,
        "one-hot draft": max(q) == 1 and min(p) > 0,
        "rare": all(0 < min(row) <= Fraction(1, 100) for row in (p, q)),
    }
    assert is_so[family]
    if family == "generic":
        assert len({target((*prefix, x, y)) for x in range(4) for y in range(4)}) > 1
    with pytest.raises(ValueError, match="unknown family"):
        tables(family + "?", vocabulary, seed)


def uniforms_of_vectors_stand_at_edges(card: Card, case: Case) -> None:
    """The outermost points of the grid at which a decision comes out as it does; every site is among the vector's."""
    for _, _, trace in runs(lambda chance: card.rule(case.p, case.block, chance)):
        for step in trace:
            accept = isinstance(step.outcome, bool)
            if case.block.tokens and case.block.is_chain() == (card.shape == "chain"):
                assert step.site in all_sites(case.block), ONE_COIN

            def comes_out(place: int, step: Any = step, accept: bool = accept) -> bool:
                u = Fraction(place, 2**24)
                here = accept_below(u, *step.odds) if accept else choose_below(u, step.odds)
                return bool(here == step.outcome)

            for side, beyond in (("low", -1), ("high", 1)):
                place, bits = edge(step, side)
                assert bits == 24
                assert comes_out(place)
                assert not 0 <= place + beyond < 2**24 or not comes_out(place + beyond)
