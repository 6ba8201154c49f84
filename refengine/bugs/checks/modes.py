"""Checks of what the laws cannot see: the shapes that are drafted, where truncation cuts, and the lossy modes."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from refengine.bugs.checks.chances import Case, first, refused
from refengine.bugs.checks.tables import share
from refengine.bugs.checks.violation import Violation
from refengine.exact import drafters
from refengine.exact.block import Block, chain
from refengine.exact.chance import runs
from refengine.exact.rules import block as block_rule
from refengine.exact.rules import nucleus, truncation, typical
from refengine.exact.rules.leviathan import leviathan

F = Fraction
HALF = share((1, 1))


def drafted() -> Violation | None:
    """Drafters draft as many candidates as they are asked for, each with its parent, its row and its own site."""
    return first(_drafted())


def _drafted() -> Iterator[Case]:
    row = share((1, 1, 1))
    chain = _blocks(drafters.sampled_chain(lambda path: row, 2))
    yield "chain parents", {b.parents for b in chain}, {(-1, 0)}
    yield "chain sites", {b.sites for b in chain}, {(("draft", 0), ("draft", 1))}
    sites = (("draft", 0, 0), ("draft", 0, 1), ("draft", 1, 2), ("draft", 1, 3))
    for name, grow, count in (("iid", drafters.iid_tree, 81), ("wor", drafters.without_replacement_tree, 54)):
        tree = _blocks(grow(lambda path: row, (2, 1)))
        yield f"{name} blocks", len(tree), count
        yield f"{name} parents", {b.parents for b in tree}, {(-1, -1, 0, 1)}
        yield f"{name} sites", {b.sites for b in tree}, {sites}
    short = _blocks(drafters.without_replacement_tree(lambda path: share((1, 0, 2)), (3,)))
    yield "fewer supported than asked", sorted(b.tokens for b in short), [(0, 2), (2, 0)]
    given = _blocks(drafters.fixed(lambda prefix: ((2, 1), (-1, -1))))
    yield "fixed", given, [Block((2, 1), (-1, -1), (None, None), (None, None))]


def _blocks(drafter: Any, prefix: tuple[int, ...] = ()) -> list[Block]:
    return [block for block, _, _ in runs(lambda chance: drafter(prefix, chance))]


def truncated() -> Violation | None:
    """Causal and stopping truncation cut where they say; the retrospective one turns (.7, .3) into (.85, .15)."""
    return first(_truncated())


def _truncated() -> Iterator[Case]:
    def confidence(path: tuple[int, ...]) -> Fraction:
        return F(1, 4) if path[-1:] == (1,) else F(1, 2)

    for threshold, want in ((F(1, 4), [2]), (F(3, 8), [1, 2]), (F(1, 2), [1, 2]), (F(5, 8), [0])):
        blocks = _blocks(truncation.causal(lambda path: HALF, confidence, threshold, 2))
        yield f"causal at {threshold}", sorted({len(b.tokens) for b in blocks}), want
    stopped = _blocks(truncation.stopping(lambda path: HALF, lambda path: path[-1:] == (1,), 2), (1,))
    yield "stopping", sorted(b.tokens for b in stopped), [(0, 0), (0, 1), (1,)]
    yield "sites when cut", {b.sites for b in stopped}, {(("draft", 0), ("draft", 1)), (("draft", 0),)}

    # x_0 = 0 promises a second token and is kept with it; after x_0 = 1 nothing is worth its cost, so x_0 is dropped.
    late = truncation.retrospective(lambda path: HALF, lambda path: F(int(path != (1,))), (F(1), F(3), F(2)), 2)
    kept = sorted({(b.tokens[:1], len(b.tokens)) for b in _blocks(late)})
    yield "retrospective keeps", kept, [((), 0), ((0,), 2)]
    p = share((7, 3))

    def one_round(chance: Any) -> int:
        return leviathan([p] * 3, late((), chance), chance).tokens[0]

    heads = sum((weight for token, weight, _ in runs(one_round) if token == 0), F(0))
    yield "retrospective law of token 0", heads, F(17, 20)
    # Kept are 2 tokens after x_0 = 0 and 1 after x_0 = 1: speeds 1, 15/14 and 10/9 or 5/6.
    early = truncation.retrospective(lambda path: HALF, _promise, (F(1), F(7, 5), F(9, 5)), 2)
    kept = sorted({(b.tokens[:1], len(b.tokens)) for b in _blocks(early)})
    yield "retrospective looks at the confidence of each position", kept, [((0,), 2), ((1,), 1)]
    even = truncation.retrospective(lambda path: HALF, lambda path: F(1), (F(1), F(2), F(3)), 2)
    yield "retrospective at a tie keeps the shortest", {len(b.tokens) for b in _blocks(even)}, {0}
    dear = truncation.retrospective(lambda path: HALF, lambda path: F(1, 2), (F(4), F(5), F(6)), 2)
    yield "retrospective weighs 1/4, 3/10, 7/24", {len(b.tokens) for b in _blocks(dear)}, {1}


def _promise(path: tuple[int, ...]) -> Fraction:
    return {(): F(1, 2), (0,): F(1), (1,): F(0)}.get(path, F(1, 4))


def impossible() -> Violation | None:
    """A draft that q cannot have drawn passes iff the target wants it; rules defined on chains refuse trees."""
    return first(_impossible())


def _impossible() -> Iterator[Case]:
    p, q = share((0, 1, 1)), share((0, 0, 1))
    for token, weight in ((0, F(0)), (1, F(1)), (2, F(1, 2))):
        drafted = chain((token,), (q,), (("draft", 0),))
        yield f"weight of token {token}", block_rule.prefix_weights([p, p], drafted), [F(1), weight]
        kept = _law(lambda c, d=drafted: len(leviathan([p, p], d, c).path))
        yield f"leviathan keeps token {token}", kept.get(1, F(0)), weight
    tree = Block((1, 2), (-1, -1), (q, q), (("draft", 0, 0), ("draft", 0, 1)))
    for rule in (leviathan, block_rule.block):
        yield refused(lambda r=rule: _law(lambda c: r([p] * 3, tree, c).path), "judges chains only")  # type: ignore[misc]


def lossy() -> Violation | None:
    """Typical acceptance and Medusa's nucleus mode decide as stated: thresholds, strictness, ties, what is emitted."""
    return first(_lossy())


def _lossy() -> Iterator[Case]:
    row = share((5, 3, 2, 0))
    for inside in (0.0, 1e-5):
        entropy = -sum(w * math.log(w + inside) for w in (0.5, 0.3, 0.2))
        got = typical.threshold(row, 0.9, 0.3, inside)
        yield f"threshold by entropy, {inside} inside", math.isclose(got, 0.3 * math.exp(-entropy), rel_tol=1e-14), True
    yield "threshold by epsilon", typical.threshold(row, 0.01, 0.3, 1e-5), 0.01
    released = typical.threshold(HALF, 1.0, 0.3, 1e-5)  # 1e-5 inside the logarithm is visible in the fifth digit
    yield "inside the logarithm", math.isclose(released, 0.3 * (0.5 + 1e-5), rel_tol=1e-14), True
    a, b = share((2, 1, 1)), share((1, 2, 1))
    tree = Block((0, 1, 2, 1), (-1, -1, 0, 0), (None,) * 4, (None,) * 4)
    rows = [a, b, a, b, a]
    rule: Any
    no_coins: Any = None
    for rule, eps, tokens, path in (
        (typical.typical, 0.25, (0, 1, 0), (0, 3)),  # node 1 has exactly 1/4: not more, so refused; 3 has 1/2
        (typical.typical, 0.2, (0, 1, 0), (0, 3)),  # all pass: the longer, then the likelier
        (typical.typical, 0.5, (0,), ()),  # nothing passes: the root's argmax
        (typical.typical_inclusive, 0.5, (0, 1, 0), (0, 3)),
        (typical.typical_inclusive, 0.51, (0,), ()),
    ):
        verdict = rule(rows, tree, no_coins, eps, 9.0)
        yield f"{rule.__name__} at {eps}", (verdict.tokens, verdict.path), (tokens, path)
    twins = Block((0, 1), (-1, -1), (None,) * 2, (None,) * 2)
    for rule in (typical.typical, typical.typical_inclusive):
        verdict = rule([share((1, 1, 0)), a, b], twins, no_coins)
        yield f"{rule.__name__} at a tie", (verdict.tokens, verdict.path), ((1, 1), (1,))
    orphan = Block((2, 0), (-1, 0), (None,) * 2, (None,) * 2)
    verdict = typical.typical([share((1, 1, 0)), a, b], orphan, no_coins)
    yield "typical below a refused node", (verdict.tokens, verdict.path), ((0,), ())
    flat = share((1,) * 16)  # entropy makes the threshold 0.3 / 16: every token passes
    for rule in (typical.typical, typical.typical_inclusive):
        verdict = rule([flat, flat], Block((3,), (-1,), (None,), (None,)), no_coins)
        yield f"{rule.__name__} on a flat row", verdict.tokens, (3, 0)
    thin = share((92, 8))  # 8 % lies above 0.3 exp(-H) only where H is large, and below epsilon = 0.09
    verdict = typical.typical([thin, HALF], Block((1,), (-1,), (None,), (None,)), no_coins)
    yield "typical with the released defaults", verdict.tokens, (0,)
    yield from _nucleus(a, b)


def _nucleus(a: Any, b: Any) -> Iterator[Case]:
    """Filtered rows: a at 3/4 is (2/3, 1/3, 0), b is (1/3, 2/3, 0)."""
    cut = F(3, 4)
    twins = Block((0, 1), (-1, -1), (None,) * 2, (None,) * 2)
    # The last leaf tries first: 1 with 1/3; else 0 with 2/3; else the root's own row.
    want = {(1, 0): F(2, 9), (1, 1): F(1, 9), (0, 0): F(4, 27), (0, 1): F(8, 27), (0,): F(4, 27), (1,): F(2, 27)}
    yield "nucleus, two leaves", _law(lambda c: nucleus.nucleus([a, b, a], twins, c, cut).tokens), want
    fast = {(1, 0): F(1, 3), (0, 1): F(4, 9), (0,): F(2, 9)}
    yield "nucleus, fast", _law(lambda c: nucleus.nucleus([a, b, a], twins, c, cut, fast=True).tokens), fast
    # A root that two leaves share gets two chances: 1 - (1/3)^2, and each leaf then needs its own second token.
    shared = Block((0, 0, 1), (-1, 0, 0), (None,) * 3, (None,) * 3)
    depth = {2: F(4, 9) + F(5, 9) * F(2, 9), 0: F(1, 9)}
    depth[1] = 1 - depth[2] - depth[0]
    yield "nucleus, shared root", _law(lambda c: len(nucleus.nucleus([a, b, a, a], shared, c, cut).path)), depth
    # The default 4/5 keeps tokens 0 and 2 of (7, 1, 2) / 10.
    for token, law in ((2, {(0,): F(2, 9), (): F(7, 9)}), (1, {(): F(1)})):
        single = Block((token,), (-1,), (None,), (None,))
        have = _law(lambda c, b=single: nucleus.nucleus([share((7, 1, 2)), a], b, c).path)
        yield f"nucleus, default, token {token}", have, law


def _law(program: Any) -> dict[Any, Fraction]:
    out: dict[Any, Fraction] = {}
    for result, weight, _ in runs(program):
        out[result] = out.get(result, F(0)) + weight
    return out
