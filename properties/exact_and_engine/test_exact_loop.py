"""The loop of the definition: every lossless rule in it, whatever drafts, wherever it stops."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest

from refengine.exact import drafters
from refengine.exact.block import Block, Drafter, Rule
from refengine.exact.chance import Chance
from refengine.exact.law import law, losslessness
from refengine.exact.loop import generate, plain
from refengine.exact.row import argmax
from refengine.exact.rules import RULES, truncation
from refengine.exact.rules.block import block as block_rule
from refengine.exact.rules.greedy import greedy
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.without_replacement import without_replacement
from refengine.exact.tables import Table, tables

F = Fraction


@pytest.mark.parametrize("stop", [frozenset[int](), frozenset({1})])
@pytest.mark.parametrize("family", ["generic", "zeros", "disjoint"])
def test_the_loop_has_the_law_of_plain_decoding(family: str, stop: frozenset[int]) -> None:
    """Kills a stop inside a block that is overrun, a limit that is off by one, and a round that is off its position."""
    p, q = tables(family, 2, 0)
    for gamma, rule, limit in ((1, leviathan, 3), (2, leviathan, 2), (2, block_rule, 3), (2, without_replacement, 3)):
        drafter = drafters.sampled_chain(q, gamma)
        speculative = law(lambda chance: generate(p, drafter, rule, (1, 0), limit, chance, stop))  # noqa: B023
        assert speculative == law(lambda chance: plain(p, (1, 0), limit, chance, stop))  # noqa: B023
        for tokens in speculative:
            ends = [i for i, x in enumerate(tokens) if x in stop]
            assert ends == [len(tokens) - 1] or (not ends and len(tokens) == limit)


@dataclass
class Learning:
    """A drafter whose state is how many of its drafts were rejected so far; they decide what it drafts."""

    grow: Callable[[Table, int], Drafter]
    p: Table
    q: Table
    rejected: int = 0
    last: tuple[Block, int] | None = None  # the last draft, and the prefix it was made for

    def __call__(self, prefix: tuple[int, ...], chance: Chance) -> Block:
        if self.last is not None:
            block, start = self.last
            paths = {block.path(node) for node in range(len(block.tokens))}
            kept = sum(prefix[start : start + n] in paths for n in range(1, len(prefix) - start))
            self.rejected += len(block.tokens) - kept
        block = self.grow(self.p if self.rejected % 2 else self.q, self.rejected)(prefix, chance)
        self.last = (block, len(prefix))
        return block


# By the kind of candidates that a rule's card names; n is how many drafts were rejected so far.
GROW: dict[tuple[str, str | None], dict[str, Callable[[Table, int], Drafter]]] = {
    ("chain", "iid"): {"": lambda q, n: drafters.sampled_chain(q, 1 + n % 2)},
    ("tree", "iid"): {"": lambda q, n: drafters.iid_tree(q, (1 + n % 2, 1))},
    ("tree", "distinct"): {"": lambda q, n: drafters.without_replacement_tree(q, (2, n % 2))},
    ("tree", None): {
        "": lambda q, n: drafters.fixed(lambda h: ((n % 2, 1, 0), (-1, 0, -1))),
        ", drawn": lambda q, n: drafters.sampled_chain(q, 1 + n % 2),
        ", drawn trees": lambda q, n: drafters.iid_tree(q, (1 + n % 2, 1)),
    },
}
IN_THE_LOOP: dict[str, tuple[Rule, Callable[[Table, int], Drafter]]] = {
    **{
        card.name + way: (card.rule, grow)
        for card in RULES.values()
        for way, grow in GROW[card.shape, card.drawn].items()
        if card.law == "target"
    },
    "causal": (leviathan, lambda q, n: truncation.causal(q, lambda h: q(h)[0], F(1, 2 + n), 2)),
    "stopping": (block_rule, lambda q, n: truncation.stopping(q, lambda h: h[-1] == n % 2, 2)),
}


@pytest.mark.parametrize("way", IN_THE_LOOP)
def test_every_rule_in_the_loop(way: str) -> None:
    """Kills a rule that is lossless round by round for a drafter without memory only, and a stop or cut inside one."""
    rule, grow = IN_THE_LOOP[way]
    for family, stop, limit in (("generic", frozenset({1}), 3), ("zeros", frozenset[int](), 3)):
        p, q = tables(family, 2, 0)
        speculative = law(lambda chance: generate(p, Learning(grow, p, q), rule, (0,), limit, chance, stop))  # noqa: B023
        assert speculative == law(lambda chance: plain(p, (0,), limit, chance, stop))  # noqa: B023


@pytest.mark.parametrize("way", ["leviathan", "point_mass"])
def test_greedy_in_the_loop(way: str) -> None:
    """Kills a greedy loop that writes anything but the argmax after the argmax, whatever is proposed."""
    grow = IN_THE_LOOP[way][1]
    p, q = tables("generic", 2, 0)
    best: tuple[int, ...] = ()
    for _ in range(4):
        best = (*best, argmax(p(best)))
    assert law(lambda chance: generate(p, Learning(grow, p, q), greedy, (), 4, chance)) == {best: 1}


def test_a_round_chosen_at_random_is_lossless() -> None:
    """Kills a rule for which it matters how drafter, length or tree were come by: each is left to a coin here."""
    p, q = tables("generic", 2, 0)
    pairs: list[tuple[Rule, list[Drafter]]] = [
        (leviathan, [drafters.sampled_chain(q, 2), drafters.sampled_chain(p, 1)]),
        (point_mass, [drafters.fixed(lambda h: ((0, 1), (-1, -1))), drafters.fixed(lambda h: ((1, 1), (-1, 0)))]),
    ]
    for rule, choices in pairs:

        def mixed(prefix: tuple[int, ...], chance: Chance, choices: list[Drafter] = choices) -> Block:
            return choices[chance.choose([F(1, 3), F(2, 3)], ("which", 0))](prefix, chance)

        assert losslessness(p, mixed, rule, (), 3) == 0
