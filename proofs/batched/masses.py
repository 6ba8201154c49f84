"""The mass of a row over a vocabulary of any size: a number that depends on the row alone, and grows in proportion.

A row is shown at every token that was drafted and at any other one (`columns`, the other one last). Nothing else is
known of its mass than what `EveryVocabulary.v` proves to hold of every sum over every vocabulary:
- rows that are equal at every token have the same mass;
- where a u = b w at every token, a sum(u) = b sum(w), for numbers a and b that are the same at every token;
- a row without negative weights has no negative mass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import z3

from proofs.batched.terms import ANY, OTHER, Entry, Paths, Stray, Token, real, simple, unknowns
from proofs.smt.real import Atom, Term


@dataclass(frozen=True)
class Mass:
    """The sum of a row over all tokens: an unknown, or a multiple of one; what is sure of it; and the row."""

    sum: Term
    columns: tuple[Term, ...]
    facts: tuple[Atom, ...] = ()


# By z3's numbers of the terms, which are kept, so that no others get these numbers.
NAMES: dict[tuple[int, ...], tuple[str, Sequence[Term]]] = {}


def weighed(row: Sequence[Entry], world: Paths) -> Mass:
    """The mass of a row of terms, given as entries at every drafted token and at any other one.

    Where the row is in proportion to one that the exact text weighed, it is handed back as a multiple of that.
    """
    columns = tuple(simple(real(entry)) for entry in row)
    if all(z3.is_rational_value(c) and c.as_fraction() == 0 for c in columns):
        return Mass(z3.RealVal(0), columns)
    name, _ = NAMES.setdefault(tuple(c.get_id() for c in columns), (f"mass{len(NAMES)}", columns))
    if name not in world.weighed:
        world.weighed[name] = in_proportion(name, columns, world) or alone(name, columns, world)
        world.assumed.extend(world.weighed[name].facts)
    world.masses[name] = world.weighed[name]
    return world.weighed[name]


def mass_of(row: Sequence[Entry], world: Paths) -> Entry:
    """The mass alone; ANY where an entry is."""
    return ANY if any(entry is ANY for entry in row) else weighed(row, world).sum


def alone(name: str, columns: tuple[Term, ...], world: Paths) -> Mass:
    mass = z3.Real(name)
    return Mass(mass, columns, (mass >= 0,) if world.sure(z3.And(*(c >= 0 for c in columns))) else ())


def in_proportion(name: str, columns: tuple[Term, ...], world: Paths) -> Mass | None:
    """As a multiple of a mass that the exact text took; None where none is found to be in proportion."""
    for given, wanted in world.given_masses.items():
        if given == name:
            return wanted
        if found := proportion(columns, wanted.columns, world):
            a, b = found
            times = z3.Real(f"ratio of {name} to {given}")
            row = tuple(times * w for w in wanted.columns)
            return Mass(times * wanted.sum, row, (times > 0, a * times == b))
    return None


def proportion(ours: tuple[Term, ...], wanted: tuple[Term, ...], world: Paths) -> tuple[Term, Term] | None:
    """Positive a and b with a u = b w at every token, u and w being the two rows; None where none are found."""
    for a, b in factors(ours[-1], wanted[-1]):
        alike = (a * u == b * w for u, w in zip(ours, wanted, strict=True))
        if world.sure(z3.And(a > 0, b > 0, *alike)):
            return a, b
    return None


def greatest_of(row: Sequence[Entry], world: Paths) -> Entry:
    """The greatest of a row: any token, the same for the same row, and for one in proportion."""
    if any(entry is ANY for entry in row):
        return Stray(world, drafted=True)
    columns = tuple(simple(real(entry)) for entry in row)
    name = f"argmax{[c.sexpr() for c in columns]}"
    if name not in world.given_tops:
        alike = (given for given, wanted in world.given_tops.items() if proportion(columns, wanted, world))
        name = next(alike, name)
    world.tops[name] = columns
    return Token(name, len(row) - 1, world)


def factors(ours: Term, wanted: Term) -> Iterator[tuple[Term, Term]]:
    """Guesses at a and b: the one row's value and the other's where a single weight is 1, or -1, and the rest 0."""
    weights = [w for w in dict.fromkeys((*unknowns(ours), *unknowns(wanted))) if w.decl().name().endswith(OTHER)]
    seen: dict[tuple[int, int], tuple[Term, Term]] = {}
    for weight in weights:
        for value in (1, -1):
            at = [(w, z3.BoolVal(True) if z3.is_bool(w) else z3.RealVal(value if w.eq(weight) else 0)) for w in weights]
            a, b = (z3.simplify(z3.substitute(term, *at)) for term in (wanted, ours))
            none = any(z3.is_rational_value(n) and n.as_fraction() <= 0 for n in (a, b))
            if not none and (a.get_id(), b.get_id()) not in seen:
                seen[a.get_id(), b.get_id()] = (a, b)
                yield a, b
