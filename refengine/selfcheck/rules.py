"""Our own rules held to their promises: the exact law of every rule on hostile tables, as findings.

Lossless rules must come out at TV exactly 0 on every table; the lossy ones are the report's negative controls and are
named with their exact TV on a table where it is large.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from refengine.exact import drafters
from refengine.exact.block import Drafter, Rule, Target
from refengine.exact.law import Law, Tokens, completed, round_law, target_law, tv
from refengine.exact.row import argmax, point, row
from refengine.exact.rules import truncation
from refengine.exact.rules.agreement import agreement
from refengine.exact.rules.block import block
from refengine.exact.rules.greedy import greedy
from refengine.exact.rules.iid_candidates import iid_candidates
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.rules.nucleus import nucleus
from refengine.exact.rules.point_mass import point_mass
from refengine.exact.rules.typical import typical
from refengine.exact.rules.without_replacement import without_replacement
from refengine.exact.tables import FAMILIES, Table, tables
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

VOCABULARY, DEPTH, SEEDS = 3, 2, range(3)


@dataclass(frozen=True)
class Cell:
    """A rule with a way of drafting; `policy` turns the target's row into the row that is promised."""

    name: str
    rule: Rule
    drafter: Callable[[Table], Drafter]
    source: str
    greedy: bool = False


def _chain(q: Table) -> Drafter:
    return drafters.sampled_chain(q, DEPTH)


def _iid(q: Table) -> Drafter:
    return drafters.iid_tree(q, (2, 1))


def _distinct(q: Table) -> Drafter:
    return drafters.without_replacement_tree(q, (2, 1))


def _top_two(q: Table) -> Drafter:
    """The two likeliest tokens, then the likeliest after each: what an EAGLE-2 tree looks like in miniature."""

    def block_of(prefix: tuple[int, ...]) -> tuple[list[int], list[int]]:
        first = sorted(range(VOCABULARY), key=lambda x: (-q(prefix)[x], x))[:2]
        return [*first, *(argmax(q((*prefix, x))) for x in first)], [-1, -1, 0, 1]

    return drafters.fixed(block_of)


LOSSLESS = (
    Cell("leviathan", leviathan, _chain, "Leviathan et al. 2023, Alg. 1; Chen et al. 2023, Alg. 2"),
    Cell("block", block, _chain, "Sun et al. 2024, Alg. 2"),
    Cell("agreement", agreement, _chain, "DFlash's released verification; acceptance sum p q"),
    Cell("agreement, tree", agreement, _distinct, "DFlash's released verification; acceptance sum p q"),
    Cell("greedy", greedy, _chain, "temperature to 0", greedy=True),
    Cell("greedy, tree", greedy, _top_two, "temperature to 0", greedy=True),
    Cell("point_mass", point_mass, _top_two, "EAGLE-2/3's released verification (qx = 1.0)"),
    Cell("point_mass, sampled chain", point_mass, _chain, "a sampled draft treated as a point mass"),
    Cell("iid_candidates", iid_candidates, _iid, "SpecInfer, Miao et al. 2024"),
    Cell("without_replacement", without_replacement, _distinct, "EAGLE-1's sampling tree; Jeon et al. 2024"),
)


def audit_rules() -> list[Finding]:
    """The findings of every rule, lossless ones first."""
    return [*map(lossless_finding, LOSSLESS), *lossy_findings()]


def lossless_finding(cell: Cell) -> Finding:
    """TV of the completed one-round law against the target's, over every family and seed."""
    worst, count = Fraction(0), 0
    for target, draft in _all_tables(cell.greedy):
        emitted = round_law(target, cell.drafter(draft), cell.rule, (0,))
        distance = tv(completed(emitted, target, (0,), DEPTH + 1), target_law(target, (0,), DEPTH + 1))
        worst, count = max(worst, distance), count + 1
    return Finding(
        id=f"rules/{cell.name.replace(', ', '-').replace(' ', '-')}",
        subject=f"refengine.exact.rules, {cell.name}",
        claim=f"One round of {cell.name} leaves the law of the next {DEPTH + 1} tokens unchanged.",
        source=cell.source,
        verdict="consistent" if worst == 0 else "violated",
        method=f"exact law over rationals, {count} context-dependent tables, V = {VOCABULARY}",
        numbers={"largest TV": str(worst), "tables": count},
        recipe=Recipe(function=f"{__name__}:rerun", arguments={}),
        tables=_law_table(cell),
    )


def lossy_findings() -> Iterator[Finding]:
    """The lossy rules and drafters, each on the smallest table that shows it."""
    p73, fair = row(["0.7", "0.3"]), row([1, 1])
    confidence: truncation.Confidence = lambda prefix: Fraction(1, 10) if prefix[-1:] == (1,) else Fraction(9, 10)  # noqa: E731
    retrospective = truncation.retrospective(
        lambda prefix: fair, confidence, (Fraction(1), Fraction(5, 2), Fraction(13, 5)), 2
    )
    yield _lossy("truncation-retrospective", "Retrospective confidence scheduling", "DSpark paper, App. A",
                 lambda prefix: p73, retrospective, leviathan)  # fmt: skip
    p532 = row([5, 3, 2])
    three = drafters.fixed(lambda prefix: ((2, 1, 0), (-1, -1, -1)))
    yield _lossy("nucleus", "Medusa's nucleus mode", "Medusa released code, sampling='nucleus'",
                 lambda prefix: p532, three,
                 lambda p, b, c: nucleus(p, b, c, top_p=Fraction(1)))  # fmt: skip
    p64 = row([6, 4])
    one = drafters.fixed(lambda prefix: ((1,), (-1,)))
    yield _lossy("typical", "Medusa's typical acceptance", "Medusa released code, sampling='typical'",
                 lambda prefix: p64, one, typical)  # fmt: skip


def rerun() -> list[Finding]:
    return audit_rules()


def _all_tables(promise_greedy: bool) -> Iterator[tuple[Target, Table]]:
    for family in FAMILIES:
        for seed in SEEDS:
            target, draft = tables(family, VOCABULARY, seed)
            yield _greedily(target) if promise_greedy else target, draft


def _greedily(target: Table) -> Target:
    return lambda prefix: point(argmax(target(prefix)), VOCABULARY)


def _law_table(cell: Cell) -> dict[str, dict[str, list[object]]]:
    """The law of the first two tokens on one generic table, for the plot."""
    target, draft = tables("generic", VOCABULARY, 0)
    promised = _greedily(target) if cell.greedy else target
    observed = completed(round_law(promised, cell.drafter(draft), cell.rule, (0,)), promised, (0,), 2)
    return {"law": _compare(target_law(promised, (0,), 2), observed)}


def _compare(target: Law[Tokens], observed: Law[Tokens]) -> dict[str, list[object]]:
    outcomes = sorted(target.keys() | observed.keys())
    return {
        "outcome": [" ".join(map(str, tokens)) for tokens in outcomes],
        "target": [float(target.get(tokens, 0)) for tokens in outcomes],
        "observed": [float(observed.get(tokens, 0)) for tokens in outcomes],
    }


def _lossy(name: str, title: str, source: str, target: Target, drafter: Drafter, rule: Rule) -> Finding:
    observed = completed(round_law(target, drafter, rule, ()), target, (), 1)
    expected = target_law(target, (), 1)
    distance = tv(observed, expected)
    return Finding(
        id=f"rules/lossy-{name}",
        subject=f"refengine.exact.rules, {title}",
        claim=f"{title} leaves the law of the next token unchanged.",
        source=source,
        role="control",
        verdict="violated" if distance else "consistent",
        method="exact law over rationals",
        numbers={"TV": str(distance)},
        magnitude=Magnitude(tv=Quantity(value=float(distance), tolerance=1e-15), exact=True),
        witness={
            "target": [str(expected.get((x,), 0)) for x in range(len(target(())))],
            "emitted": [str(observed.get((x,), 0)) for x in range(len(target(())))],
        },
        recipe=Recipe(function=f"{__name__}:rerun", arguments={}),
        tables={"law": _compare(expected, observed)},
    )
