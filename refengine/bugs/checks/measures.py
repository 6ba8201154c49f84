"""Checks of rows, blocks and laws: what everything else is measured with."""

import hashlib
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from refengine.bugs.checks import oracle
from refengine.bugs.checks.chances import Case, first, refusal, refused
from refengine.bugs.checks.tables import Table, tangled
from refengine.bugs.checks.violation import Violation
from refengine.exact import block as blocks
from refengine.exact import drafters, law, row
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.tables import FAMILIES, tables

F = Fraction
A, B = (F(1, 2), F(1, 2), F(0)), (F(1, 4), F(0), F(3, 4))


def rows() -> Violation | None:
    """Rows: normalisation, argmax ties, residual, removal, overlap, by hand; bad rows refused."""
    return first(_rows())


def _rows() -> Iterator[Case]:
    yield "row", row.row([1, "1/2", F(1, 2), 0]), (F(1, 2), F(1, 4), F(1, 4), F(0))
    yield "normalised", row.normalised([F(1), F(3)]), (F(1, 4), F(3, 4))
    yield "point", row.point(1, 3), (F(0), F(1), F(0))
    yield (
        "argmax",
        (*(row.argmax([F(w) for w in weights]) for weights in ((1, 3, 2), (2, 1, 2), (0, 1, 1))),),
        (1, 0, 1),
    )
    yield "residual", row.residual(A, B), (F(1, 4), F(1, 2), F(0))
    yield "residual of equals", row.residual(A, A), (F(0), F(0), F(0))
    yield "without", row.without(B, 2), (F(1, 4), F(0), F(0))
    yield "overlap", (row.overlap(A, B), row.overlap(A, A)), (F(1, 4), F(1))
    yield refused(lambda: row.row([1, -1, 3]), "weight of token 1 is negative")
    for ragged in (row.residual, row.overlap):
        yield refused(lambda f=ragged: f(A, B[:2]), "shorter")  # type: ignore[misc]
    yield refused(lambda: row.normalised([F(0), F(0)]), "no token has mass")
    yield refused(lambda: row.row([0, 0]), "no token has mass")


def trees() -> Violation | None:
    """Blocks: children, paths, chains, rows after nodes, by hand; malformed blocks refused."""
    return first(_trees())


def _trees() -> Iterator[Case]:
    tree = blocks.Block((5, 6, 7, 8), (-1, -1, 0, 2), (A, None, B, A), (("draft", 0), None, ("draft", 1), ("draft", 2)))
    yield "children", [tree.children(j) for j in range(-1, 4)], [[0, 1], [2], [], [3], []]
    yield "paths", [tree.path(j) for j in range(-1, 4)], [(), (5,), (6,), (5, 7), (5, 7, 8)]
    yield "is_chain", tree.is_chain(), False
    chain = blocks.chain([1, 2], [A, B], [("draft", 0), ("draft", 1)])
    yield "chain", (chain.is_chain(), chain.parents, chain.q, chain.tokens), (True, (-1, 0), (A, B), (1, 2))
    yield "row_after", [blocks.row_after([A, B, A], j) for j in (-1, 0, 1)], [A, B, A]
    yield "drawn", blocks.drawn(tree, 2), B
    yield "check_chain", refusal(lambda: blocks.check_chain(chain)), ""
    yield refused(lambda: blocks.drawn(tree, 1), "node 1 was not drawn")
    yield refused(lambda: blocks.check_chain(tree), "judges chains only")
    for parents in ((0, 0), (-2, 0), (-1, 1), (-1, 2)):
        yield refused(lambda p=parents: blocks.Block((1, 2), p, (A, A), (None, None)), "parents come before")  # type: ignore[misc]
    for sizes in ((1, 2, 2, 2), (2, 1, 2, 2), (2, 2, 1, 2), (2, 2, 2, 1)):
        parts = ((1, 1), (-1, 0), (A, A), (None, None))
        cut = [part[:size] for part, size in zip(parts, sizes, strict=True)]
        yield refused(lambda c=cut: blocks.Block(*c), "one entry per node")  # type: ignore[misc]


def laws() -> Violation | None:
    """Laws: total variation, completion, the target's law, losslessness, witnesses, against plain recursions."""
    return first(_laws())


def _laws() -> Iterator[Case]:
    table = tangled(2, 3, 4)
    one, two = {(0,): F(1, 4), (1,): F(3, 4)}, {(0,): F(1, 2), (2,): F(1, 2)}
    yield (
        "tv",
        (law.tv(one, two), law.tv(one, one), law.tv({}, one), law.tv(two, {})),
        (F(3, 4), F(0), F(1, 2), F(1, 2)),
    )
    for prefix, length in (((), 0), ((), 1), ((), 3), ((1,), 2)):
        want = oracle.ancestral(table.p, prefix, length)
        yield f"target_law {prefix} {length}", law.target_law(table.p, prefix, length), want
    emitted = {(0,): F(1, 2), (1, 0): F(1, 4), (1, 1, 0): F(1, 4)}
    for length in (1, 2, 3):
        want = oracle.topped_up(emitted, table.p, (), length)
        yield f"completed {length}", law.completed(emitted, table.p, (), length), want
    yield from _rounds(table)
    coin = [(1,), (0, 2, 2)]
    program: Any = lambda chance: chance.choose(coin[chance.choose((1, 1), ("a", 0))], ("b", 0))  # noqa: E731
    yield "law", law.law(program), {0: F(1, 2), 1: F(1, 4), 2: F(1, 4)}
    yield "witness", [(d.site, d.outcome) for d in law.witness(program, 2)], [(("a", 0), 1), (("b", 0), 2)]
    yield refused(lambda: law.witness(program, 3), "no run returns 3")


PINNED = "2ffa84d1f03ccb46"


def inputs() -> Violation | None:
    """The hostile tables of the exact audit are the same rows in every version: findings on them can be compared."""
    return first(_inputs())


def _inputs() -> Iterator[Case]:
    lines = []
    for family, vocabulary, seed in itertools.product(FAMILIES, (2, 3), (0, 1)):
        for table in tables(family, vocabulary, seed):
            lines += [f"{family} {table(prefix)}" for prefix in ((), (0,), (1, 0), (0, 1, 1))]
    yield "digest of the rows", hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16], PINNED
    yield refused(lambda: tables("other", 2, 0), "unknown family 'other'")


def _rounds(table: Table) -> Iterator[Case]:
    drafter = drafters.sampled_chain(table.q, 1)
    block = blocks.Block((0, 1, 1), (-1, 0, -1), (A, A, A), (None,) * 3)
    rows = [table.p((1,)), table.p((1, 0)), table.p((1, 0, 1)), table.p((1, 1))]
    yield "target_rows", blocks.target_rows(table.p, (1,), block), rows
    for prefix in ((), (0,)):
        p, q = table.p(prefix), table.q(prefix)
        want: dict[tuple[int, ...], Fraction] = {}
        for x in range(2):
            kept = min(p[x], q[x])
            for y, py in enumerate(table.p((*prefix, x))):
                want[x, y] = kept * py
            want[x,] = p[x] - kept
        have = law.round_law(table.p, drafter, leviathan, prefix)
        yield f"round_law {prefix}", have, {tokens: mass for tokens, mass in want.items() if mass}
        lazy: Any = lambda p, block, chance: leviathan([p[0]] * 2, block, chance)  # noqa: E731
        lossy = law.round_law(table.p, drafter, lazy, prefix)
        far = oracle.distance(oracle.topped_up(lossy, table.p, prefix, 2), oracle.ancestral(table.p, prefix, 2))
        yield f"losslessness {prefix}", law.losslessness(table.p, drafter, lazy, prefix, 2), far
        yield "losslessness of a lossless round", law.losslessness(table.p, drafter, leviathan, prefix, 2), F(0)
