"""Drafting in the definition: what the table drafters propose, and which truncations keep a round lossless."""

from fractions import Fraction

from refengine.exact import drafters
from refengine.exact.block import Drafter
from refengine.exact.law import Law, law, losslessness, round_law
from refengine.exact.row import Row, point, row
from refengine.exact.rules import truncation
from refengine.exact.rules.leviathan import leviathan

F = Fraction
P, Q = row(["0.7", "0.3"]), row(["0.5", "0.5"])


def test_retrospective_truncation_is_lossy_and_causal_is_not() -> None:
    """Kills a truncation that looks ahead: (.7, .3) comes out as (.85, .15), and as itself when it looks back only."""

    def confidence(prefix: tuple[int, ...]) -> Fraction:
        return {(): F(1, 2), (0,): F(1), (1,): F(0)}.get(prefix, F(1))

    cost = [F(1), F(8, 5), F(9, 5)]
    target, draft = (lambda prefix: P), (lambda prefix: Q)
    backward = truncation.retrospective(draft, confidence, cost, 2)
    emitted = round_law(target, backward, leviathan, ())
    assert sum(w for tokens, w in emitted.items() if tokens[0] == 0) == F(85, 100)
    assert losslessness(target, backward, leviathan, (), 1) == F(15, 100)
    for bar in (F(0), F(1, 2), F(3, 4), F(1)):
        assert losslessness(target, truncation.causal(draft, confidence, bar, 2), leviathan, (), 3) == 0
    ending = truncation.stopping(draft, lambda prefix: prefix[-1] == 1, 2)
    assert losslessness(target, ending, leviathan, (), 3) == 0


def drafted(drafter: Drafter, prefix: tuple[int, ...] = ()) -> Law[tuple[int, ...]]:
    return law(lambda chance: drafter(prefix, chance).tokens)


def test_truncation_keeps_the_lengths_it_promises() -> None:
    """Kills `<=` for `<` at the threshold, a token dropped that must be kept, a tie to the longer, and a
    confidence of another position."""

    def confidence(prefix: tuple[int, ...]) -> Fraction:
        return F(1, 2) if not prefix or prefix[-1] == 0 else F(1, 4)

    draft = lambda prefix: Q  # noqa: E731
    half = F(1, 2)
    assert drafted(truncation.causal(draft, confidence, half, 2)) == {(0, 0): F(1, 4), (0, 1): F(1, 4), (1,): half}
    assert drafted(truncation.causal(draft, confidence, F(2, 3), 2)) == {(): 1}
    assert drafted(truncation.causal(draft, confidence, half, 2), (1,)) == {(): 1}
    stop = truncation.stopping(draft, lambda prefix: prefix[-1] == 1, 2)
    assert drafted(stop) == {(0, 0): F(1, 4), (0, 1): F(1, 4), (1,): half}
    # One or two drafts promise 3/2 and 7/4 tokens at cost 3/2 and 7/4: a tie with none, and the shortest is kept.
    even = truncation.retrospective(draft, lambda prefix: half, [F(1), F(3, 2), F(7, 4)], 2)
    assert drafted(even) == {(): 1}
    cheap = truncation.retrospective(draft, lambda prefix: half, [F(1), F(1), F(5, 4)], 2)
    assert drafted(cheap) == {(0,): half, (1,): half}
    # Two drafts promise three tokens at cost 3, none one at cost 2; a confidence of 0 ends all that follows.
    costly = truncation.retrospective(draft, lambda prefix: F(1), [F(2), F(3), F(3)], 2)
    assert drafted(costly) == {(x, y): F(1, 4) for x in (0, 1) for y in (0, 1)}
    doubted = truncation.retrospective(draft, lambda prefix: F(len(prefix) > 0), [F(1), F(3, 2), F(3, 2)], 2)
    assert drafted(doubted) == {(): 1}


def test_drafters_propose_what_they_say() -> None:
    """Kills a tree that grows under the wrong parent, siblings that are not distinct, and a row of another context."""
    q = {(): row([1, 1, 0]), (0,): row([0, 1, 1]), (1,): row([1, 0, 1])}

    def draft(prefix: tuple[int, ...]) -> Row:
        return q.get(prefix, point(0, 3))

    blocks = law(lambda chance: drafters.without_replacement_tree(draft, (3, 1))((), chance))
    assert {b.parents for b in blocks} == {(-1, -1, 0, 1)}
    assert {b.tokens[:2] for b in blocks} == {(0, 1), (1, 0)}
    assert all(b.q == (q[()], q[()], q[b.tokens[:1]], q[b.tokens[1:2]]) for b in blocks)
    assert all(b.sites == (("draft", 0, 0), ("draft", 0, 1), ("draft", 1, 2), ("draft", 1, 3)) for b in blocks)
    blocks = law(lambda chance: drafters.iid_tree(draft, (2, 1))((), chance))
    assert all(b.sites == (("draft", 0, 0), ("draft", 0, 1), ("draft", 1, 2), ("draft", 1, 3)) for b in blocks)
    pairs = law(lambda chance: drafters.iid_tree(draft, (2,))((), chance).tokens)
    assert pairs == {(a, b): F(1, 4) for a in (0, 1) for b in (0, 1)}
    chains = law(lambda chance: drafters.sampled_chain(draft, 2)((), chance))
    assert {b.tokens for b in chains} == {(0, 1), (0, 2), (1, 0), (1, 2)}
    assert all(b.sites == (("draft", 0), ("draft", 1)) and b.is_chain() for b in chains)
