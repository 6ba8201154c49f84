"""Rows, blocks and laws of the definition, by hand; and the hostile tables that every exact audit is held to."""

from fractions import Fraction

import pytest

from refengine.exact import drafters
from refengine.exact.block import ROOT, Block, Round, chain, row_after, target_rows
from refengine.exact.chance import Chance
from refengine.exact.law import completed, law, losslessness, round_law, target_law, tv, witness
from refengine.exact.row import argmax, normalised, overlap, point, residual, row, without
from refengine.exact.tables import FAMILIES, tables
from refengine.source_edits.committed import digest

F = Fraction


def test_rows() -> None:
    """Kills a clamp, a tie or a normalisation that is wrong in both texts at once."""
    assert row([1, "0.5", F(1, 2)]) == (F(1, 2), F(1, 4), F(1, 4))
    assert normalised([F(3), F(1)]) == (F(3, 4), F(1, 4))
    assert all(isinstance(weight, F) for weight in normalised([2, 1]))
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


def test_hostile_tables_are_the_same_on_every_machine() -> None:
    """Kills another generator or another range of weights: what was found on a table could not be found again."""
    contexts = ((), (0,), (1, 2))
    every = [
        [
            name,
            [
                [str(x) for x in table(prefix)]
                for seed in range(3)
                for table in tables(name, 4, seed)
                for prefix in contexts
            ],
        ]
        for name in FAMILIES
    ]
    assert digest(repr(every)) == "b1b951249f4398fb"


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
