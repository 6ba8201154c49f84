"""Rows, blocks, laws and the loop of the definition."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest

from refengine.exact import drafters
from refengine.exact.block import ROOT, Block, Drafter, Round, Rule, chain, row_after, target_rows
from refengine.exact.chance import Chance, Record, runs
from refengine.exact.law import completed, law, losslessness, round_law, target_law, tv, witness
from refengine.exact.loop import generate, plain
from refengine.exact.row import argmax, normalised, overlap, point, residual, row, without
from refengine.exact.rules import RULES, truncation
from refengine.exact.rules.block import block as block_rule
from refengine.exact.rules.greedy import greedy
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.without_replacement import without_replacement
from refengine.exact.tables import FAMILIES, Table, tables

F = Fraction


def test_rows() -> None:
    """Kills a clamp, a tie or a normalisation that is wrong in both texts at once."""
    assert row([1, "0.5", F(1, 2)]) == (F(1, 2), F(1, 4), F(1, 4))
    assert normalised([F(3), F(1)]) == (F(3, 4), F(1, 4))
    assert point(1, 3) == (0, 1, 0)
    assert argmax([F(1), F(3), F(3)]) == 1
    assert residual([F(3), F(1)], [F(1), F(2)]) == (2, 0)
    assert without([F(3), F(1), F(2)], 1) == (3, 0, 2)
    assert overlap(row([3, 1]), row([1, 3])) == F(1, 2)
    with pytest.raises(ValueError, match="token 1 is negative"):
        row([1, -1])
    with pytest.raises(ValueError, match="no token has mass"):
        row([0, 0])
    with pytest.raises(ValueError, match="zip"):
        residual([F(1)], [F(1), F(2)])
    with pytest.raises(ValueError, match="zip"):
        overlap([F(1)], [F(1), F(2)])


def test_blocks() -> None:
    """Kills a path or a child list that mixes up nodes, and a block that cannot be a tree."""
    tree = Block((5, 6, 7, 8), (-1, 0, -1, 1), (None,) * 4, (None,) * 4)
    assert [tree.children(j) for j in (ROOT, 0, 1, 2, 3)] == [[0, 2], [1], [3], [], []]
    assert [tree.path(j) for j in (ROOT, 0, 1, 2, 3)] == [(), (5,), (5, 6), (7,), (5, 6, 8)]
    assert not tree.is_chain()
    assert chain((5, 6), (None,) * 2, (None,) * 2).is_chain()
    assert chain((), (), ()).is_chain()
    rows = [row([1, x]) for x in range(5)]
    assert [row_after(rows, j) for j in (ROOT, 0, 3)] == [rows[0], rows[1], rows[4]]
    for parents in ((0,), (-2,), (1,)):
        with pytest.raises(ValueError, match="node 0 has parent"):
            Block((5,), parents, (None,), (None,))
    for sizes in ((1, 2, 2, 2), (2, 1, 2, 2), (2, 2, 1, 2), (2, 2, 2, 1)):
        a, b, c, d = sizes
        with pytest.raises(ValueError, match="one entry per node"):
            Block((5,) * a, (-1,) * b, (None,) * c, (None,) * d)


def test_laws_by_hand() -> None:
    """Kills a distance without its half, an outcome of one law only, and a completion that cuts or tops up wrongly."""
    assert tv({"a": F(1)}, {"b": F(1)}) == 1
    assert tv({"a": F(1, 2), "b": F(1, 2)}, {"a": F(1, 4), "b": F(1, 2), "c": F(1, 4)}) == F(1, 4)
    assert law(lambda chance: chance.accept(F(1), F(4), ("accept", 0))) == {True: F(1, 4), False: F(3, 4)}

    def target(prefix: tuple[int, ...]) -> tuple[Fraction, ...]:
        return row([1, 1]) if len(prefix) == 1 else row([1, 3]) if prefix[-1] == 0 else point(1, 2)

    joint = target_law(target, (9,), 2)
    assert joint == {(0, 0): F(1, 8), (0, 1): F(3, 8), (1, 1): F(1, 2)}
    assert completed({(0,): F(1, 2), (1, 1, 0): F(1, 2)}, target, (9,), 2) == joint
    ended = {(1,): F(1, 2), (0, 1): F(3, 8), (0, 0, 0): F(1, 32), (0, 0, 1): F(3, 32)}
    assert target_law(target, (0,), 3, (1,)) == ended
    assert completed({(): F(1, 2), (1,): F(1, 4), (0,): F(1, 4)}, target, (0,), 3, (1,)) == ended
    assert target_law(target, (1,), 1, (1,)) == {
        (0,): F(1, 2),
        (1,): F(1, 2),
    }  # a stop token of the prompt ends nothing
    trace = witness(lambda chance: chance.choose([F(1), F(0), F(2)], ("emit", 0)), 2)
    assert [d.outcome for d in trace] == [2]
    with pytest.raises(LookupError, match="returns 1"):
        witness(lambda chance: chance.choose([F(1), F(0), F(2)], ("emit", 0)), 1)


def test_a_lossy_round_is_told_by_its_exact_distance() -> None:
    """Kills a losslessness that is always 0: a rule that emits its draft unseen is off by TV(p, q)."""
    p, q = row([3, 1]), row([1, 3])

    def gullible(rows: object, block: Block, chance: Chance) -> Round:
        return Round(block.tokens, ())

    drafter = drafters.sampled_chain(lambda prefix: q, 1)
    assert losslessness(lambda prefix: p, drafter, gullible, (), 1) == F(1, 2)
    assert round_law(lambda prefix: p, drafter, gullible, ()) == {(0,): F(1, 4), (1,): F(3, 4)}


def test_target_rows_are_root_first_and_follow_each_path() -> None:
    """Kills rows that are off by one or that follow the order of drafting instead of the tree."""
    seen = target_rows(lambda prefix: prefix, (9,), Block((1, 2, 3), (-1, -1, 0), (None,) * 3, (None,) * 3))  # type: ignore[arg-type,return-value]
    assert seen == [(9,), (9, 1), (9, 2), (9, 1, 3)]


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


def test_no_two_decisions_of_a_decode_share_a_coin() -> None:
    """Kills rounds whose sites start again at 0, and emit sites that differ from those of plain decoding."""
    p, q = tables("generic", 2, 1)
    drafter = drafters.sampled_chain(q, 2)
    for _, _, trace in runs(lambda chance: generate(p, drafter, leviathan, (0,), 3, Record(chance))):
        emits = [d.site[1] for d in trace if d.site[0] == "emit"]
        assert emits == sorted(emits)
        assert {d.site[0] for d in trace} <= {"draft", "accept", "emit"}
    (_, _, trace), *_ = list(runs(lambda chance: plain(p, (0, 1), 3, Record(chance))))
    assert [d.site for d in trace] == [("emit", 2), ("emit", 3), ("emit", 4)]


def test_nothing_is_generated_at_a_limit_of_zero() -> None:
    """Kills a loop that looks at its limit too late."""
    p, q = tables("generic", 2, 1)
    assert law(lambda chance: generate(p, drafters.sampled_chain(q, 2), leviathan, (), 0, chance)) == {(): 1}
    assert law(lambda chance: plain(p, (), 0, chance)) == {(): 1}


def test_hostile_tables_are_what_their_names_say() -> None:
    """Kills a table family that lost its teeth: a rule that passes it would prove nothing."""
    for family in FAMILIES:
        p, q = tables(family, 4, 0)
        prefixes = [(), (0,), (1,), (0, 1), (2, 2), (3,), (1, 0), (3, 3)]
        pairs = [(p(prefix), q(prefix)) for prefix in prefixes]
        assert all(sum(r) == 1 and min(r) >= 0 and len(r) == 4 for pair in pairs for r in pair)
        assert (p(()), q(())) == pairs[0], "the same prefix, the same rows"
        assert len(set(pairs)) > 3, "rows depend on the context"
        kinds = {
            "zeros": any(0 in a for a, _ in pairs) and any(0 in b for _, b in pairs),
            "equal": all(a == b for a, b in pairs),
            "disjoint": all(overlap(a, b) == 0 for a, b in pairs),
            "reversed": all(a == b[::-1] for a, b in pairs),
            "one-hot target": all(max(a) == 1 for a, _ in pairs) and any(max(b) < 1 for _, b in pairs),
            "one-hot draft": all(max(b) == 1 for _, b in pairs) and any(max(a) < 1 for a, _ in pairs),
            "rare": all(0 < min(r) < F(1, 100) for pair in pairs for r in pair),
        }
        assert kinds.get(family, True), family
    with pytest.raises(ValueError, match="unknown family 'nice'"):
        tables("nice", 3, 0)
