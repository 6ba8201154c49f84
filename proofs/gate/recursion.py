"""The reader of recursions: a function that calls itself does so on a part of what it was given, as its text shows.

Coq's own guard looks further, through reductions and functions that are handed on, and some versions of it (coqchk's
too) accept what does not end: 0 = 1 is proved so, without an axiom. What none of those holes touches is asked here:
each call is given, in the place that decreases, a variable that a `match` on what came in there binds, or on such a
variable. Nothing else recurs, as `text.py` refuses the words `fix` and `cofix`. What recurs through a function of a
library, into the children of a tree, is granted with its body. The standard library alone.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from proofs.gate import text
from proofs.gate.kernel import Question, put
from proofs.gate.terms import PRINTED, Words, closing, first, grouped, variables
from refengine.selfcheck.claims.coq_text import sentences

# An argument that is not shown could hold a call. What chooses is a `match` then, and no `if` or pattern of a `let`.
WHOLE = f"{PRINTED}\nSet Printing All."


class Own(NamedTuple):
    """The function's own name, the place that decreases, and the variable that stands there: "" where it is hidden."""

    name: str
    place: int
    whole: str


def recursions(build: Path, files: Sequence[str]) -> list[str]:
    """What is wrong with the functions of these files that call themselves."""
    names = [f"{file}.{name}" for file in files for name in fixpoints((build / f"{file}.v").read_text())]
    return put(build, files, [recursing(names, text.granted()["recursions"])])[0] if names else []


def fixpoints(source: str) -> list[str]:
    """The functions of a text that call themselves."""
    return [sentence.name() for sentence in sentences(source) if sentence.word() == "Fixpoint"]


def recursing(names: Collection[str], granted: Mapping[str, str]) -> Question:
    """Of functions that call themselves, those that do so otherwise; `granted`: by name the body that may."""

    def read(answers: dict[str, str]) -> list[str]:
        bodies = {name: " ".join(answer.partition("\n     : ")[0].split()) for name, answer in answers.items()}
        may = {name: " ".join(body.split()) for name, body in granted.items()}
        wrong = {name: why for name, body in bodies.items() if (why := misused(body)) and may.get(name) != body}
        return [f"{name} {why}: {bodies[name]}" for name, why in wrong.items()]

    return Question({name: f"Print Proofs.{name}." for name in names}, WHOLE, read)


def misused(body: str) -> str:
    """What is wrong with a function, as Coq prints it; "" where every call of itself is on a part."""
    try:
        return _misused(body)
    except (ValueError, IndexError):
        return "cannot be read"


def _misused(body: str) -> str:
    _, *rest = re.split(r"\b(?:co)?fix\b", body)
    if len(rest) != 1:
        return "is not one function that calls itself"
    words = grouped(rest[0])
    if "with" in words:  # of a match it stands in a group
        return "is one of several functions that call each other: say one, with a number that tells them apart"
    equals = words.index(":=")
    head = words[1 : first(words, "{", ":")]
    binders = variables(head)
    whole = str(words[words.index("struct") + 1]) if "struct" in words[:equals] else binders[0]
    own = Own(str(words[0]), binders.index(whole), whole)
    said, right = [*every(words[equals + 1 :])].count(own.name), on_parts(words[equals + 1 :], own, frozenset())
    otherwise = (
        f"calls itself otherwise than with a variable, in the place of {whole}, that a match on it has bound "
        "(through a function of a library: its body is granted under [recursions])"
    )
    return "" if said == right and own.name not in binders else otherwise


def every(words: Words) -> Iterator[str]:
    for word in words:
        yield from [word] if isinstance(word, str) else every(word)


def on_parts(term: Words, own: Own, parts: frozenset[str]) -> int:
    """How many calls are on parts; a call in what is not looked into is not counted, so that it is missing."""
    match term:
        case ["match", *rest]:
            return matched(rest, own, parts)
        case ["(", *inner]:
            return on_parts(inner, own, parts)
        case ["fun" | "forall" as binds, *rest]:
            end = rest.index("=>" if binds == "fun" else ",")
            return on_parts(rest[end + 1 :], *hidden(own, parts, variables(rest[:end])))
        case ["let", str() as name, *rest]:
            equals, end = rest.index(":="), closing(rest)
            value, inside = rest[equals + 1 : end], rest[end + 1 :]
            return on_parts(value, own, parts) + on_parts(inside, *hidden(own, parts, [name]))
        case [head, *rest]:
            given = rest[: first(rest, ":")]
            part = given[own.place] if head == own.name and len(given) > own.place else ""
            inner = sum(on_parts(word, own, parts) for word in (head, *given) if isinstance(word, list))
            return inner + (isinstance(part, str) and part in parts)
    return 0


def matched(term: Words, own: Own, parts: frozenset[str]) -> int:
    value = term[: first(term, "as", "in", "return", "with")]
    branches, count = term[first(term, "with") + 1 :], on_parts(value, own, parts)
    while branches:
        arrow, end = branches.index("=>"), first(branches[1:], "|") + 1
        pattern = [*every(branches[1:arrow])]  # behind a bar; the constructor comes first
        count += on_parts(branches[arrow + 1 : end], *bound(value, pattern[1:], own, parts))
        branches = branches[end:]
    return count


def bound(value: Words, names: Sequence[str], own: Own, parts: frozenset[str]) -> tuple[Own, frozenset[str]]:
    """What are parts where a pattern on a value binds these names."""
    own_now, parts_now = hidden(own, parts, names)
    is_part = len(value) == 1 and isinstance(value[0], str) and (value[0] == own.whole or value[0] in parts)
    return own_now, parts_now | (frozenset(names) if is_part else frozenset())


def hidden(own: Own, parts: frozenset[str], names: Collection[str]) -> tuple[Own, frozenset[str]]:
    """What is left where these names mean something else."""
    return own._replace(whole="" if own.whole in names else own.whole), parts - {*names}
