"""The exact law of a rule with a defect in it, at given rows: what a bet against that defect needs to know.

The edited rule lives as a module object of its own beside the original, so nothing has to be started. Drafts are drawn
from q here, whatever the defect; one whose edit is elsewhere (a policy, a drafter, a loop) has no law in this sense.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from refengine.bugs.shared_coins import coupled_law
from refengine.exact.block import Rule, chain
from refengine.exact.chance import Chance
from refengine.exact.row import Row
from refengine.source_edits.edit import Bug
from refengine.source_edits.loader import edited_module

RULES = "refengine.exact.rules."


def is_rule_level(bug: Bug) -> bool:
    """Whether the defect is in one rule of `exact`."""
    modules = {edit.module for edit in bug.edits}
    return len(modules) == 1 and next(iter(modules)).startswith(RULES)


@cache
def edited_rule(bug: Bug) -> Rule:
    """The rule with the defect in it; ValueError where the defect is not in a rule."""
    if not is_rule_level(bug):
        raise ValueError(f"{bug.id} edits {', '.join(sorted({edit.module for edit in bug.edits}))}, and no single rule")
    module = bug.edits[0].module
    rule: Rule = getattr(edited_module(module, bug.edits), module.removeprefix(RULES))
    return rule


def round_law(bug: Bug, p: Sequence[Row], q: Sequence[Row]) -> dict[tuple[int, ...], Fraction]:
    """The law of what one round emits: p is gamma + 1 rows, q gamma rows, the draft a chain drawn from q.

    Equal sites share one coin, so defects of coin addressing have their law too.
    """
    rule = edited_rule(bug)
    sites = [("draft", i) for i in range(len(q))]

    def one_round(chance: Chance) -> tuple[int, ...]:
        tokens = [chance.choose(row, site) for row, site in zip(q, sites, strict=True)]
        return rule(p, chain(tokens, q, sites), chance).tokens

    return coupled_law(one_round)


def next_token(bug: Bug, p: Sequence[Row], q: Sequence[Row], emitted: tuple[int, ...]) -> Row | None:
    """The law of the token after `emitted` in that round, given that there is one; None where there never is.

    A lossless rule gives p[len(emitted)].
    """
    at = len(emitted)
    weights = [Fraction(0)] * len(p[0])
    for tokens, mass in round_law(bug, p, q).items():
        if tokens[:at] == emitted and len(tokens) > at:
            weights[tokens[at]] += mass
    total = sum(weights)
    return tuple(w / total for w in weights) if total else None
