"""The definition itself: lossless rules at TV exactly 0 on hostile tables, lossy ones with the law they must have."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from refengine.exact import drafters
from refengine.exact.block import Block, Drafter, Round, Rule
from refengine.exact.chance import Chance, runs
from refengine.exact.law import losslessness, round_law, target_rows
from refengine.exact.row import overlap, row
from refengine.exact.rules.agreement import agreement
from refengine.exact.rules.block import block as block_rule
from refengine.exact.rules.iid_candidates import iid_candidates
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.without_replacement import without_replacement
from refengine.exact.tables import FAMILIES, Table, tables

F = Fraction
V = 3


def sampled(q: Table) -> Drafter:
    return drafters.sampled_chain(q, 2)


def single(q: Table) -> Drafter:
    return drafters.sampled_chain(q, 1)


def iid(q: Table) -> Drafter:
    return drafters.iid_tree(q, (2, 1))


def distinct(q: Table) -> Drafter:
    return drafters.without_replacement_tree(q, (2, 1))


def given(q: Table) -> Drafter:
    """Two roots, a repeated one, and children in another order than their parents."""
    return drafters.fixed(lambda prefix: ((1, 0, 1, 2, 0, 0), (-1, -1, -1, 1, 0, 1)))


def nothing(q: Table) -> Drafter:
    return drafters.fixed(lambda prefix: ((), ()))


CELLS: list[tuple[Rule, Callable[[Table], Drafter]]] = [
    (leviathan, sampled),
    (block_rule, sampled),
    (block_rule, single),
    (iid_candidates, sampled),
    (iid_candidates, iid),
    (without_replacement, sampled),
    (without_replacement, distinct),
    (point_mass, given),
    (agreement, given),
    (agreement, sampled),
    (agreement, iid),
    *((rule, nothing) for rule in (leviathan, block_rule, iid_candidates, without_replacement, point_mass, agreement)),
]


@pytest.mark.parametrize(("rule", "drafter"), CELLS, ids=lambda f: f.__name__)
def test_lossless_rules_are_lossless(rule: Rule, drafter: Callable[[Table], Drafter]) -> None:
    """Kills any rule whose round changes the target's joint law of three tokens on any hostile table."""
    for family in FAMILIES:
        for seed in range(2):
            p, q = tables(family, V, seed)
            assert losslessness(p, drafter(q), rule, (), 3) == 0, (family, seed)


@pytest.mark.parametrize(("rule", "drafter"), CELLS, ids=lambda f: f.__name__)
def test_a_round_is_a_path_of_the_block_and_one_more_token(rule: Rule, drafter: Callable[[Table], Drafter]) -> None:
    """Kills a path that does not name the accepted nodes: caches are rolled back by it, and the law does not see it."""
    p, q = tables("generic", V, 0)

    def program(chance: Chance) -> tuple[Block, Round]:
        block = drafter(q)((), chance)
        return block, rule(target_rows(p, (), block), block, chance)

    for (block, out), _, _ in runs(program):
        assert len(out.tokens) == len(out.path) + 1
        assert [block.parents[j] for j in out.path] == [-1, *out.path][:-1]
        assert tuple(block.tokens[j] for j in out.path) == out.tokens[:-1]


def lengths(target: Table, drafter: Drafter, rule: Rule) -> Fraction:
    """The expected number of accepted drafts of one round."""
    return sum((w * (len(t) - 1) for t, w in round_law(target, drafter, rule, ()).items()), F(0))


def test_leviathan_accepts_the_overlap() -> None:
    """Kills a rule that is lossless but refuses too often: one draft is kept with probability sum min(p, q)."""
    for family in FAMILIES:
        p, q = tables(family, V, 3)
        assert lengths(p, drafters.sampled_chain(q, 1), leviathan) == overlap(p(()), q(()))


def test_block_verification_keeps_what_its_paper_says() -> None:
    """Kills a block rule that is lossless and no longer than the ratio rule (Sun et al. 2024, section 1)."""
    p, q = row(["1/3", "2/3"]), row(["2/3", "1/3"])
    drafter = drafters.sampled_chain(lambda prefix: q, 2)
    assert lengths(lambda prefix: p, drafter, leviathan) == F(10, 9)
    assert lengths(lambda prefix: p, drafter, block_rule) == F(11, 9)
    for family in FAMILIES:
        target, draft = tables(family, V, 1)
        pair = [lengths(target, drafters.sampled_chain(draft, 2), rule) for rule in (leviathan, block_rule)]
        assert pair[0] <= pair[1], family
