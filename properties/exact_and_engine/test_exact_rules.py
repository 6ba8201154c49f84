"""The definition itself: lossless rules at TV exactly 0 on hostile tables, lossy ones with the law they must have."""

import inspect
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from refengine.exact import drafters
from refengine.exact import rules as exact_rules
from refengine.exact.block import Block, Drafter, Round, Rule, target_rows
from refengine.exact.card import Card, Loss, numbers
from refengine.exact.chance import Chance, runs
from refengine.exact.law import completed, losslessness, round_law, target_law, tv
from refengine.exact.row import Row, argmax, overlap, point, row
from refengine.exact.rules import RULES
from refengine.exact.rules.block import block as block_rule
from refengine.exact.rules.leviathan import leviathan
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


# By the kind of candidates that a rule's card names.
DRAFTERS: dict[tuple[str, str | None], tuple[Callable[[Table], Drafter], ...]] = {
    ("chain", "iid"): (sampled, single, nothing),
    ("tree", "iid"): (sampled, iid, nothing),
    ("tree", "distinct"): (sampled, distinct, nothing),
    ("tree", None): (given, sampled, iid, nothing),
}
CELLS = [
    pytest.param(card, drafter, id=f"{card.name}-{drafter.__name__}")
    for card in RULES.values()
    for drafter in DRAFTERS[card.shape, card.drawn]
    if card.lossless
]


@pytest.mark.parametrize(("card", "drafter"), CELLS)
def test_lossless_rules_are_lossless(card: Card, drafter: Callable[[Table], Drafter]) -> None:
    """Kills any rule whose round changes the target's joint law of three tokens on any hostile table."""
    for family in FAMILIES:
        for seed in range(2):
            p, q = tables(family, V, seed)
            promised = p if card.law == "target" else lambda prefix, p=p: point(argmax(p(prefix)), V)
            assert losslessness(promised, drafter(q), card.rule, (), 3) == 0, (family, seed)


@pytest.mark.parametrize("card", [card for card in RULES.values() if not card.lossless], ids=lambda card: card.name)
def test_lossy_rules_lose_what_their_cards_say(card: Card) -> None:
    """Kills a rule that is called lossy and is not, and a loss that is another than it is said to be."""
    assert isinstance(card.law, Loss)
    emitted = completed(round_law(card.law.target, card.law.draft, shown(card), ()), card.law.target, (), 1)
    assert tv(emitted, target_law(card.law.target, (), 1)) == F(card.law.tv) > 0


def shown(card: Card) -> Rule:
    assert isinstance(card.law, Loss)
    return partial(card.rule, **numbers(card.law.options))


def test_every_rule_of_the_folder_is_in_the_listing() -> None:
    """Kills a rule without a card, which no test, law or check would know of, and one that hides another's name."""
    public = {
        name
        for file in Path(exact_rules.__file__).parent.glob("[!_]*.py")
        for name, rule in inspect.getmembers(import_module(f"{exact_rules.__name__}.{file.stem}"), inspect.isfunction)
        if [*inspect.signature(rule).parameters][:3] == ["p", "block", "chance"]
    }
    assert public == {*RULES}
    assert RULES["typical_inclusive"].file == "typical"


def test_settings_are_the_defaults_and_what_dyadic_rows_can_hit() -> None:
    """Kills a comparison of the two texts off every threshold, where `<` and `<=` are alike, or without a switch."""
    assert RULES["leviathan"].settings() == [{}]
    assert RULES["nucleus"].settings() == [{}, {"top_p": F(3, 4), "fast": True}]
    assert RULES["typical_inclusive"].settings() == [{}, {"epsilon": F(1, 4), "delta": 9}]


@pytest.mark.parametrize(("card", "drafter"), CELLS)
def test_a_round_is_a_path_of_the_block_and_one_more_token(card: Card, drafter: Callable[[Table], Drafter]) -> None:
    """Kills a path that does not name the accepted nodes: caches are rolled back by it, and the law does not see it."""
    p, q = tables("generic", V, 0)

    def program(chance: Chance) -> tuple[Block, Round]:
        block = drafter(q)((), chance)
        return block, card.rule(target_rows(p, (), block), block, chance)

    for (block, out), _, _ in runs(program):
        assert len(out.tokens) == len(out.path) + 1
        assert [block.parents[j] for j in out.path] == [-1, *out.path][:-1]
        assert tuple(block.tokens[j] for j in out.path) == out.tokens[:-1]


def given_rows(*rows: list[int]) -> list[Row]:
    return [row(r) for r in rows]


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
