"""The mass of a row over a vocabulary of any size: a number that depends on the row alone, and grows in proportion.

A row is shown at every token that was drafted and at any other one (`columns`, the other one last). Nothing else is
known of its mass than what `EveryVocabulary.v` proves to hold of every sum over every vocabulary:
- rows that are equal at every token have the same mass;
- where a u = b w at every token, a sum(u) = b sum(w), for numbers a and b that are the same at every token;
- a row without negative weights has no negative mass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from proofs.batched.terms import ANY, OTHER, Entry, Paths, real, unknowns
from proofs.smt.real import Atom, Term


@dataclass(frozen=True)
class Mass:
    """The unknown that stands for the sum of a row over all tokens."""

    symbol: Term
    columns: tuple[Term, ...]


MASSES: dict[tuple[str, ...], Mass] = {}


def mass_of(row: Sequence[Entry], world: Paths) -> Entry:
    """Of entries at every drafted token and at any other one; ANY where one of them is."""
    if any(entry is ANY for entry in row):
        return ANY
    columns = tuple(z3.simplify(real(entry)) for entry in row)
    if all(z3.is_rational_value(c) and c.as_fraction() == 0 for c in columns):
        return z3.RealVal(0)
    found = MASSES.setdefault(tuple(c.sexpr() for c in columns), Mass(z3.Real(f"mass{len(MASSES)}"), columns))
    name = found.symbol.decl().name()
    if name not in world.masses:
        world.masses[name] = found
        if name not in world.facts:
            world.facts[name] = list(facts(found, world))
        world.assumed.extend(world.facts[name])
    return found.symbol


def facts(mass: Mass, world: Paths) -> Iterator[Atom]:
    """What is sure of a mass, beside the masses that the exact text took."""
    if world.sure(z3.And(*(c >= 0 for c in mass.columns))):
        yield mass.symbol >= 0
    for wanted in world.given_masses.values():
        if wanted is not mass and (fact := in_proportion(mass, wanted, world)) is not None:
            yield fact


def in_proportion(ours: Mass, wanted: Mass, world: Paths) -> Atom | None:
    """a sum(ours) = b sum(wanted), where a ours = b wanted at every token; None where no such a and b are found."""
    for a, b in factors(ours.columns[-1], wanted.columns[-1]):
        alike = (a * u == b * w for u, w in zip(ours.columns, wanted.columns, strict=True))
        if all(world.sure(z3.And(a > 0, b > 0, equal)) for equal in alike):
            return a * ours.symbol == b * wanted.symbol
    return None


def factors(ours: Term, wanted: Term) -> Iterator[tuple[Term, Term]]:
    """Guesses at a and b: the one row's value and the other's where a single weight is 1, or -1, and the rest 0."""
    weights = [w for w in dict.fromkeys((*unknowns(ours), *unknowns(wanted))) if w.decl().name().endswith(OTHER)]
    seen = set[Any]()
    for weight in weights:
        for value in (1, -1):
            at = [(w, z3.RealVal(value if w.eq(weight) else 0)) for w in weights]
            a, b = (z3.simplify(z3.substitute(term, *at)) for term in (wanted, ours))
            none = any(z3.is_rational_value(n) and n.as_fraction() <= 0 for n in (a, b))
            if not none and (a.sexpr(), b.sexpr()) not in seen:
                seen.add((a.sexpr(), b.sexpr()))
                yield a, b
