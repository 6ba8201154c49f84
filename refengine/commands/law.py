"""`refengine law FILE`: the exact law of one round on rows of your own.

The file is a JSON object:

    rule     one of the rules of `refengine.exact.rules`
    p        the target's rows, root first: [n + 1, V]; numbers, or strings such as "0.1" and "1/3", read exactly
    q        the draft's rows [n, V]
    tokens   the drafted tokens [n]; left out, they are drawn from q and the law includes the drafting
    parents  the parent of each node, -1 for a first candidate; left out, the draft is a chain
    first    how many of the emitted tokens the law is of; left out, as many as have MOST_OUTCOMES values at most

Rows need not depend on the path: every node at depth d is judged by the row given for it. A row may miss 1 by 1e-6, as
float32 rows do, and is then renormalised.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from refengine.errors import BadInput
from refengine.exact import merged, unknowns
from refengine.exact.block import Block, Rule, chain
from refengine.exact.chance import Chance, Site
from refengine.exact.law import Law, completed, law, target_law, tv
from refengine.exact.row import Row, normalised
from refengine.exact.rules import RULES
from refengine.files import each_key_once, json_of, read_text

SLACK = Fraction(1, 10**6)  # 2^-24 relative per entry, summed: float32 softmax rows stay well inside
MOST = Fraction(10**300)  # what a float still holds
WALKED = {"block", "typical", "typical_inclusive"}  # they weigh whole drafts: no two drafts are one state
MOST_DRAFTS = 100_000  # of such a rule, where the chain is drawn: minutes
MOST_STEPS = 5 * 10**7  # of the others, whose states merge: a microsecond each
MOST_OUTCOMES = 100_000  # that are listed
LONG = re.compile(r"e[+-]?\d{4}", re.IGNORECASE)  # an exponent that a Fraction would write out for hours
KEYS = {"rule", "p", "q", "tokens", "parents", "first"}
Emitted: TypeAlias = tuple[tuple[int, ...], int]  # the first tokens of a round, and how many drafts it accepted


@dataclass(frozen=True)
class Question:
    """What the file asks, checked."""

    rule: str
    p: tuple[Row, ...]
    q: tuple[Row, ...] | None
    tokens: tuple[int, ...] | None
    parents: tuple[int, ...]
    first: int


def read(file: Path) -> Question:
    """The question in a file. Raises BadInput with one line that names what is wrong."""
    options = {"parse_float": str, "parse_constant": _not_a_number, "object_pairs_hook": each_key_once(str(file))}
    try:
        return asked(json_of(read_text(file), str(file), **options), file)
    except BadInput as error:
        raise error if str(file) in str(error) else BadInput(f"{file}: {error}") from None


def asked(data: Any, file: Path) -> Question:
    if not isinstance(data, dict):
        raise BadInput(f"{file}: expected a JSON object with the keys {', '.join(sorted(KEYS))}")
    if unknown := sorted(data.keys() - KEYS):
        raise BadInput(f"{file}: unknown key {unknown[0]!r}")
    return question(data)


def question(data: dict[str, Any]) -> Question:
    """Check every part of a question, in the order in which a reader would."""
    name = data.get("rule")
    if not isinstance(name, str) or name not in RULES:
        raise BadInput(f"rule {name!r} is unknown: one of {', '.join(RULES)}")
    p = rows("p", data.get("p"))
    vocabulary, count = len(p[0]), len(p) - 1
    q = rows("q", data["q"]) if data.get("q") is not None else None
    if q is not None and (len(q) != count or len(q[0]) != vocabulary):
        raise BadInput(f"q is {len(q)} x {len(q[0])}; with p {len(p)} x {vocabulary} it must be {count} x {vocabulary}")
    tokens = integers("tokens", data["tokens"], count) if data.get("tokens") is not None else None
    for node, token in enumerate(tokens or ()):
        if not 0 <= token < vocabulary:
            raise BadInput(f"tokens[{node}] is {token}, outside the vocabulary of {vocabulary} tokens")
    if tokens is None and q is None:
        raise BadInput("give q, from which the draft is drawn, or tokens, or both")
    if tokens is None:
        check_size(name, vocabulary, count)
    parents = tuple(range(-1, count - 1))
    if data.get("parents") is not None:
        parents = integers("parents", data["parents"], count)
        if tokens is None and parents != tuple(range(-1, count - 1)):
            raise BadInput("a tree needs its tokens: only chains are drawn here")
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            raise BadInput(f"parents[{node}] is {parent}: parents come before their children, -1 is the root")
    return Question(name, p, q, tokens, parents, of_the_first(data.get("first"), vocabulary, count + 1, tokens is None))


def check_size(rule: str, vocabulary: int, drafts: int) -> None:
    """Refuse a drawn chain whose law would take more than minutes."""
    if rule in WALKED and vocabulary**drafts > MOST_DRAFTS:
        raise BadInput(
            f"{vocabulary}^{drafts} drafts are too many to enumerate (at most {MOST_DRAFTS:,}), and {rule} weighs each "
            "as a whole: give tokens"
        )
    steps = (drafts + 1) * (drafts**3 + vocabulary**2 * (drafts + vocabulary))
    if rule not in WALKED and steps > MOST_STEPS:
        raise BadInput(
            f"{drafts} drafts of {vocabulary} tokens take {steps:,} steps (at most {MOST_STEPS:,}: 4 drafts of 200 "
            "tokens, 16 of 130, 64 of 50): give tokens"
        )


def of_the_first(given: Any, vocabulary: int, most: int, drawn: bool) -> int:
    """How many tokens of a round the law is of: all `most` of them where the draft is given."""
    listed = [length for length in range(1, most + 1) if not drawn or vocabulary**length <= MOST_OUTCOMES]
    longest = max(listed, default=1)
    if given is None:
        return longest
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= longest:
        why = f"{vocabulary}^{longest + 1} are too many to list" if longest < most else "a round emits no more"
        raise BadInput(f"first is {given!r}; it is 1 to {longest} here: {why}")
    return given


def rows(name: str, data: Any) -> tuple[Row, ...]:
    """A non-empty list of rows of equal length, each a distribution."""
    if not isinstance(data, list) or not data or not all(isinstance(row, list) and row for row in data):
        raise BadInput(f"{name} must be a list of rows, each a list of probabilities")
    for i, row in enumerate(data):
        if len(row) != len(data[0]):
            raise BadInput(f"{name}[{i}] has {len(row)} entries, {name}[0] has {len(data[0])}: rows are ragged")
    return tuple(one_row(f"{name}[{i}]", row) for i, row in enumerate(data))


def one_row(name: str, data: list[Any]) -> Row:
    entries = []
    for token, entry in enumerate(data):
        try:
            if isinstance(entry, bool) or (isinstance(entry, str) and LONG.search(entry)):
                raise ValueError
            value = Fraction(entry)
        except (ValueError, TypeError, ZeroDivisionError):
            raise BadInput(f"{name}[{token}] is {entry!r}, not a number") from None
        if value < 0:
            raise BadInput(f"{name}[{token}] is negative: {entry}")
        entries.append(value)
    total = sum(entries, Fraction(0))
    if abs(total - 1) > SLACK:
        raise BadInput(f"{name} sums to {float(min(total, MOST)):.9g}{' or more' * (total > MOST)}, not to 1")
    return normalised(entries)


def integers(name: str, data: Any, count: int) -> tuple[int, ...]:
    if not isinstance(data, list) or not all(isinstance(x, int) and not isinstance(x, bool) for x in data):
        raise BadInput(f"{name} must be a list of integers")
    if len(data) != count:
        raise BadInput(f"{name} has {len(data)} entries; p has {count + 1} rows, so there are {count} nodes")
    return tuple(data)


def _not_a_number(text: str) -> NoReturn:
    raise BadInput(f"{text} stands where a probability is expected")


# ---------------------------------------------------------------------------------------------------------------------


def answer(asked: Question) -> dict[str, Any]:
    """The law of what is emitted, of how much is accepted, and for a drawn chain how far the law is from the target's.

    Raises BadInput where the rule cannot judge such a draft (a tree under a chain rule, no q under a ratio rule).
    """

    try:
        found = emitted(asked)
    except ValueError as error:
        raise BadInput(f"{asked.rule}: {error}") from None
    tokens: Law[tuple[int, ...]] = {}
    accepted: Law[int] = {}
    for (first, kept), mass in found.items():
        tokens[first] = tokens.get(first, 0) + mass
        accepted[kept] = accepted.get(kept, 0) + mass
    return {
        "rule": asked.rule,
        "first": asked.first,
        "law": {" ".join(map(str, key)): str(tokens[key]) for key in sorted(tokens)},
        "accepted": {str(key): str(accepted[key]) for key in sorted(accepted)},
        "expected tokens": str(sum((n + 1) * mass for n, mass in accepted.items())),
        "TV from the target": str(distance(asked, tokens)) if asked.tokens is None else None,
    }


def emitted(asked: Question) -> Law[Emitted]:
    """The law of the first tokens and of how much is accepted, every path walked or equal states merged."""
    rule = RULES[asked.rule].rule
    if asked.tokens is not None or asked.rule in WALKED:
        return law(one_round(asked, rule, asked.p, asked.q))
    over_unknown: Rule = unknowns.opened(sys.modules[rule.__module__])[rule.__name__]
    return merged.law(one_round(asked, over_unknown, unlooked(asked.p), unlooked(asked.q or ())))


def one_round(asked: Question, rule: Rule, p: Sequence[Any], q: Sequence[Any] | None) -> Callable[[Chance], Emitted]:
    """The round of a question, its rows handed over in one of two forms."""

    def program(chance: Chance) -> Emitted:
        made = rule(p, draft(asked, q, chance), chance)
        return made.tokens[: asked.first], len(made.path)

    return program


def unlooked(rows: Sequence[Row]) -> list[unknowns.Row]:
    """Rows that may be read at tokens which nobody has looked at."""
    return [unknowns.Row(lambda row=row: row, len(row)) for row in rows]  # type: ignore[misc]


def draft(asked: Question, q: Sequence[Any] | None, chance: Chance) -> Block:
    """The given candidates, or a chain drawn from q."""
    count = len(asked.parents)
    if asked.tokens is not None:
        return Block(asked.tokens, asked.parents, tuple(q or (None,) * count), (None,) * count)
    drawn = q or ()
    sites: list[Site] = [("draft", i) for i in range(count)]
    return chain([chance.choose(row, site) for row, site in zip(drawn, sites, strict=True)], drawn, sites)


def distance(asked: Question, emitted: Law[tuple[int, ...]]) -> Fraction:
    """TV between the completed law of the round's first tokens and the target's joint law of as many."""
    rows, length = lambda prefix: asked.p[len(prefix)], asked.first
    return Fraction(tv(completed(emitted, rows, (), length), target_law(rows, (), length)))
