"""Python's words in the exact text, where they are of rows over a vocabulary of any size.

What the exact text does besides it does token by token: Translated.v is that text over every vocabulary.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import z3

from proofs.batched.masses import greatest_of, mass_of
from proofs.batched.powers import function, head_of
from proofs.batched.terms import ONE, Entry, Paths, Token, chosen
from proofs.batched.vocabulary import column_of
from proofs.smt.real import Atom, Real, term
from refengine.exact import row as exact_row


class Weight(Real):
    """An entry of a row that is gone through. In a sum a condition on it does not branch: see `summands`."""

    def __gt__(self, other: Any) -> bool:
        if self.world.guards is None:
            return super().__gt__(other)
        self.world.guards.append((self.term, self.term > term(other)))
        return True


class Row(tuple[Real, ...]):
    """A row of the exact text: an entry for each class of drafted tokens, and one for any other token."""

    def __getitem__(self, at: Any) -> Any:
        return super().__getitem__(column_of(at))

    def __iter__(self) -> Iterator[Any]:
        return (Weight(e.term, e.world) if isinstance(e, Real) else e for e in super().__iter__())


class Rest(Row):
    """(p - q)+, and the p that it was left of."""

    of: Row


class Normal(Row):
    """What was divided by its mass; to do so again would change nothing."""


def residual(p: Sequence[Real], q: Sequence[Real]) -> Rest:
    rest = Rest(exact_row.residual(p, q))  # type: ignore[arg-type]
    rest.of = p if isinstance(p, Row) else Row(p)
    return rest


def normalised(weights: Sequence[Real]) -> Normal:
    """Exact rows never leave nothing after a refusal, rounded ones may: then p stands in its place (`row.correction`).

    The rows that are asked about have any mass, so they get there as rounded ones do.
    """
    if isinstance(weights, Normal):
        return weights
    try:
        return Normal(exact_row.normalised(weights))  # type: ignore[arg-type]
    except ValueError:
        if not isinstance(weights, Rest):
            raise
        return normalised(weights.of)


@contextmanager
def read_on_columns(rule: Any, world: Paths, classes: int, left_nothing: bool) -> Iterator[None]:
    """Sums, the greatest token, the head of a row and the tokens that a row is told at, in a rule and what it calls.

    left_nothing: whether it goes on where a refusal leaves nothing; else the exact text raises there, as it is written.
    """

    def sum_of(weights: Any, start: Any = 0) -> Any:
        terms = [term(w) for w in weights] if isinstance(weights, Sequence) else [*summands(weights, world)]
        if len(terms) != classes + 1 or start != 0:
            raise NotImplementedError("only whole rows are added up here")
        return Real(term_of(mass_of(terms, world)), world)

    def told(weights: Sequence[Any]) -> Iterator[tuple[Token, Any]]:
        yield from ((Token(f"column{c}", classes, world), weight) for c, weight in enumerate(weights))

    def argmax(weights: Sequence[Any]) -> Any:
        return greatest_of([term(w) for w in weights], world)

    def keep_top_p(share: Any) -> Callable[..., Row]:
        return lambda weights, prompt, prefix: Row(kept([term(w) for w in weights], term(share), world))

    of_rows = {"tuple": Row, "max": greatest, "enumerate": told, "sum": sum_of}
    of_rule = {"sum": sum_of, "argmax": argmax, "keep_top_p": keep_top_p, "min": least, "float": number, "math": LOGS}
    of_rule |= {"residual": residual, "normalised": normalised} if left_nothing else {}
    with ExitStack() as patches:
        for module, words in ((exact_row, of_rows), (rule, of_rule)):
            for name, word in words.items():
                patches.enter_context(mock.patch.object(module, name, word, create=True))
        yield


def summands(values: Iterator[Any], world: Paths) -> Iterator[Any]:
    """What is added up for each entry of a row, also where a condition leaves it out: there it must be 0."""
    while True:
        world.guards = []
        value = next(values, None)
        guards, world.guards = world.guards, None
        if value is None:
            return
        for entry, guard in guards:
            nothing = z3.simplify(z3.substitute(term(value), (entry, ZERO))).eq(ZERO)
            if not nothing or not world.always(z3.Or(guard, entry == 0)):
                raise NotImplementedError("a sum leaves out what is not 0")
        yield term(value)


def kept(row: Sequence[Any], share: Any, world: Paths) -> Iterator[Real]:
    choose = chosen(world, whole=False)
    pairs = zip(head_of(row, share, world), row, strict=True)
    return (Real(choose(stays, weight, 0), world) for stays, weight in pairs)


def greatest(*values: Any, **options: Any) -> Any:
    """Python's max, which is a term where it is of terms."""
    return of_two(lambda a, b: a < b, *values) if is_of_terms(values) else max(*values, **options)


def least(*values: Any, **options: Any) -> Any:
    return of_two(lambda a, b: b < a, *values) if is_of_terms(values) else min(*values, **options)


def is_of_terms(values: Sequence[Any]) -> bool:
    return len(values) == 2 and any(isinstance(v, Real) for v in values)


def of_two(second: Callable[[Any, Any], Atom], *values: Any) -> Real:
    """The second where the condition says so, else the first."""
    a, b = (term(v) for v in values)
    return Real(z3.If(second(a, b), b, a), next(v.world for v in values if isinstance(v, Real)))


def number(value: Any) -> Any:
    """There is one real type here, without rounding."""
    return value if isinstance(value, Real) else float(value)


def logs(word: str) -> Callable[[Any], Any]:
    plain = getattr(math, word)
    return lambda x: Real(function(word, x.term), x.world) if isinstance(x, Real) else plain(x)


LOGS = SimpleNamespace(log=logs("log"), exp=logs("exp"))


ZERO = z3.RealVal(0)


def term_of(entry: Entry) -> Any:
    if z3.is_expr(entry):
        return z3.If(entry, ONE, ZERO) if z3.is_bool(entry) else entry
    return term(entry)
