"""Our own rules held to their promises: the exact law of every rule on hostile tables, as findings.

Lossless rules must come out at TV exactly 0 on every table; the lossy ones are the report's negative controls and are
named with their exact TV on a table where it is large.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

from refengine.exact import drafters
from refengine.exact.block import Drafter, Rule, Target
from refengine.exact.card import Card, Loss, numbers
from refengine.exact.law import Law, Tokens, completed, round_law, target_law, tv
from refengine.exact.row import argmax, point, row
from refengine.exact.rules import RULES, truncation
from refengine.exact.rules.leviathan import leviathan
from refengine.exact.tables import FAMILIES, Table, tables
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

VOCABULARY, DEPTH, SEEDS = 3, 2, range(3)


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


# What a rule is tried on, by the kind of candidates that its card names: part of the finding's name -> drafter.
DRAFTERS: dict[tuple[str, str | None], dict[str, Callable[[Table], Drafter]]] = {
    ("chain", "iid"): {"": _chain},
    ("tree", "iid"): {"": _iid},
    ("tree", "distinct"): {"": _distinct},
    ("tree", None): {"": _chain, ", tree": _top_two},
}


def audit_rules() -> list[Finding]:
    """The findings of every rule, lossless ones first."""
    lossless = [
        lossless_finding(card, more, drafter)
        for card in RULES.values()
        if card.lossless
        for more, drafter in DRAFTERS[card.shape, card.drawn].items()
    ]
    return [*lossless, *lossy_findings()]


def lossless_finding(card: Card, more: str, drafter: Callable[[Table], Drafter]) -> Finding:
    """TV of the completed one-round law against what is promised, over every family and seed."""
    name, worst, count = card.name + more, Fraction(0), 0
    for target, draft in _all_tables(card):
        emitted = round_law(target, drafter(draft), card.rule, (0,))
        distance = tv(completed(emitted, target, (0,), DEPTH + 1), target_law(target, (0,), DEPTH + 1))
        worst, count = max(worst, distance), count + 1
    return Finding(
        id=f"rules/{name.replace(', ', '-')}",
        subject=f"refengine.exact.rules, {name}",
        claim=f"One round of {name} leaves the law of the next {DEPTH + 1} tokens unchanged.",
        source=card.source,
        verdict="consistent" if worst == 0 else "violated",
        method=f"exact law over rationals, {count} context-dependent tables, V = {VOCABULARY}",
        numbers={"largest TV": str(worst), "tables": count},
        recipe=Recipe(function=f"{__name__}:rerun", arguments={}),
        tables=_law_table(card, drafter),
    )


def lossy_findings() -> Iterator[Finding]:
    """A way of drafting and the rules that are lossy, each on a small table that shows it."""
    p73, fair = row(["0.7", "0.3"]), row([1, 1])
    confidence: truncation.Confidence = lambda prefix: Fraction(1, 10) if prefix[-1:] == (1,) else Fraction(9, 10)  # noqa: E731
    retrospective = truncation.retrospective(
        lambda prefix: fair, confidence, (Fraction(1), Fraction(5, 2), Fraction(13, 5)), 2
    )
    yield _lossy("truncation-retrospective", "Retrospective confidence scheduling", "DSpark paper, App. A",
                 lambda prefix: p73, retrospective, leviathan)  # fmt: skip
    for card in RULES.values():
        if isinstance(card.law, Loss):
            shown = partial(card.rule, **numbers(card.law.options))
            yield _lossy(card.name, card.name, card.source, card.law.target, card.law.draft, shown)


def rerun() -> list[Finding]:
    return audit_rules()


def _all_tables(card: Card) -> Iterator[tuple[Target, Table]]:
    for family in FAMILIES:
        for seed in SEEDS:
            target, draft = tables(family, VOCABULARY, seed)
            yield _promised(card, target), draft


def _promised(card: Card, target: Table) -> Target:
    """The rows that a rule promises to follow."""
    return target if card.law == "target" else lambda prefix: point(argmax(target(prefix)), VOCABULARY)


def _law_table(card: Card, drafter: Callable[[Table], Drafter]) -> dict[str, dict[str, list[object]]]:
    """The law of the first two tokens on one generic table, for the plot."""
    target, draft = tables("generic", VOCABULARY, 0)
    promised = _promised(card, target)
    observed = completed(round_law(promised, drafter(draft), card.rule, (0,)), promised, (0,), 2)
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
