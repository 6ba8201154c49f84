"""Coq's laws on record against the running source, on the instances that an edited module takes part in.

These two checks are what ties the theorems to the rules; `selfcheck/claims/mutants_of_rules.py` asks which mistakes in
a rule they see. They are no part of the general checks, which carry an arithmetic of their own.
"""

from collections.abc import Callable

from refengine.bugs.checks.violation import Violation
from refengine.exact.rules import RULES
from refengine.selfcheck.claims.coq_bridge import (
    Instance,
    Law,
    decisions,
    engine_law,
    engine_round,
    exact_law,
    exact_round,
    modules_of,
    parse_law,
    recorded,
    refuses_trees,
)
from refengine.source_edits.loader import edited


def exact() -> Violation | None:
    """Coq = exact."""
    return first_difference(exact_law) or accepted_tree("exact")


def engine() -> Violation | None:
    """Coq = engine."""
    return first_difference(engine_law) or accepted_tree("engine")


def first_difference(law_of: Callable[[Instance], Law]) -> Violation | None:
    """The first instance whose law is not Coq's; all instances where no source was edited."""
    for instance in recorded():
        if edited and not edited & modules_of(instance):
            continue
        if law_of(instance) != parse_law(instance["law"]):
            return Violation(f"{instance['name']}: another law than Coq's", {"instance": instance["name"]})
        if decisions(exact_round(instance)) != decisions(engine_round(instance)):
            return Violation(f"{instance['name']}: exact and engine decide at other sites", {"rule": instance["rule"]})
    return None


def accepted_tree(text: str) -> Violation | None:
    """A rule that Coq defines on chains only, and that judges a tree."""
    for rule, card in RULES.items():
        if card.shape == "chain" and not refuses_trees(text, rule):
            return Violation(f"{text} {rule} judges a tree", {"rule": rule})
    return None
