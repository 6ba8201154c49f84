"""How often a lossless rule can accept one of k independent drafts: min over H of 1 + p(H) - q(H)^k (SpecTr, Thm 5)."""

from fractions import Fraction
from itertools import combinations

from proofs.smt.smallest import grid
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
    for p in rows[::2]:
        for q in rows[1::2]:
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
