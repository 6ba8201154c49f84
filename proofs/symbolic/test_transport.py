"""How often a lossless rule can accept one of k independent drafts: min over H of 1 + p(H) - q(H)^k (SpecTr, Thm 5)."""

from fractions import Fraction
from itertools import combinations

from proofs.smt.smallest import grid
from proofs.transport import largest_flow, supply
from refengine.exact.drafters import iid_tree
from refengine.exact.law import round_law
from refengine.exact.row import Row, overlap
from refengine.exact.rules.iid_candidates import iid_candidates


def bound(p: Row, q: Row, k: int) -> Fraction:
    """The least of 1 + p(H) - q(H)^k over all sets H of tokens, the empty one included."""
    tokens = range(len(p))
    sets = [h for size in range(len(p) + 1) for h in combinations(tokens, size)]
    return min(1 + sum((p[x] for x in h), Fraction(0)) - sum((q[x] for x in h), Fraction(0)) ** k for h in sets)


def acceptance(p: Row, q: Row, k: int) -> Fraction:
    """The exact probability that recursive rejection keeps one of k independent drafts."""
    emitted = round_law(lambda prefix: p, iid_tree(lambda prefix: q, (k,)), iid_candidates, ())
    return sum((mass for tokens, mass in emitted.items() if len(tokens) > 1), Fraction(0))


def test_one_draft_reaches_the_bound() -> None:
    """k = 1: the bound is 1 - TV, and the rule reaches it, on every row in sixths over three tokens."""
    rows = list(grid(3, 6))
    for p in rows:
        for q in rows:
            assert bound(p, q, 1) == overlap(p, q) == acceptance(p, q, 1)


def test_two_drafts_stay_below_it() -> None:
    """k = 2: never above the bound; below it somewhere, so recursive rejection is not optimal; at it somewhere else.

    Kills a bound with q(H) instead of q(H)^k, and the belief that a lossless rule for k drafts is the best one.
    """
    rows = list(grid(3, 4))
    gaps = {bound(p, q, 2) - acceptance(p, q, 2) for p in rows for q in rows}
    assert min(gaps) == 0
    assert max(gaps) > 0
    assert any(acceptance(p, q, 2) > bound(p, q, 1) for p in rows for q in rows)


def test_some_rule_reaches_the_bound() -> None:
    """Up to three tokens and three drafts the largest flow equals its cut, 1 + p(H) - q(H)^k, and that is the bound.

    Kills a bound that nothing reaches. Each pair is its own certificate: a feasible flow and a cut of the same value.
    """
    for vocabulary, k, parts in ((2, 2, 6), (2, 3, 5), (3, 2, 4), (3, 3, 3)):
        for p in grid(vocabulary, parts):
            for q in grid(vocabulary, parts):
                flow, cut = largest_flow(p, q, k)
                sets = supply(q, k)
                assert all(f >= 0 for f in flow.values())
                assert all(sum(flow[s, x] for x in s) <= mass for s, mass in sets.items())
                assert all(sum(f for (_, y), f in flow.items() if y == x) <= p[x] for x in range(vocabulary))
                # Where the cut is, everything that could pass it does: H takes all of p, the rest all that it is sent.
                value = sum(flow.values())
                inside = sum((mass for s, mass in sets.items() if s <= cut), Fraction(0))
                assert value == 1 - inside + sum((p[x] for x in cut), Fraction(0)) == bound(p, q, k)


def test_recursive_rejection_falls_short_with_two_tokens_already() -> None:
    """Kills the belief that small vocabularies are safe: equality somewhere, a gap elsewhere."""
    gaps = {(p, q): bound(p, q, 2) - acceptance(p, q, 2) for p in grid(2, 6) for q in grid(2, 6)}
    assert min(gaps.values()) == 0 < max(gaps.values())
