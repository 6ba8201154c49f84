"""What a proof applies, read from the term that Coq prints of it. The standard library alone.

A name is applied where the term reaches it: not below a `fun` that nothing is given to, and not in one branch of
several; something may be assumed there that is never so. What is not looked into counts as reaching nothing.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

# How terms are to be printed, so that they read as here: no notation, no branch for several constructors.
PRINTED = """Unset Printing Notations.
Unset Printing Records.
Unset Printing Matching.
Unset Printing Factorizable Match Patterns.
Unset Printing Allow Match Default Clause.
Set Printing Coercions.
Set Printing Width 10000000.
Set Printing Depth 10000000."""
WORD = re.compile(r"\{\||\|\}|:=|=>|<<:|<:|[(),:|]|[^\s(),:=|{}<]+|\S")
QUALIFIED = re.compile(r"[A-Z]\w*\.[A-Za-z_][\w']*")
BINDER = re.compile(r"\(([\w' ]+) : ")
MARK, AND = "\x01", "\x02"
OPEN = {"(": ")", "match": "end"}
Group = list["str | Group"]
Words = Sequence["str | Group"]
Given = tuple[Words, "Known"]  # what a variable stands for: words, and what their variables stand for
Known = Mapping[str, Given]


def applied(term: str, variables: int, names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Those of `names` that a printed term of so many variables reaches, and how much each is given there.

    Brackets without any of the names are made one word first, the inner ones before the outer ones.
    """
    text = QUALIFIED.sub(lambda name: f"{MARK}{name[0]}" if name[0] in names else name[0], term)
    before = ""
    while text != before:
        before, text = text, re.sub(rf"\([^(){MARK}]*\)", one_word, text)
    nothing: Given = (["_"], {})
    yield from (
        (name[1:], count) for name, count in reached(grouped(text), {}, [nothing] * variables) if name[0] == MARK
    )


def one_word(brackets: re.Match[str]) -> str:
    """The variables of a `fun` keep their names; a `fun` that hands on what a `match` finds stays as it is."""
    if brackets[0].startswith("(fun ") and " match " in brackets[0]:
        return brackets[0]
    binder = BINDER.match(brackets[0])
    return f" {AND.join(binder[1].split())} " if binder else " _ "


def grouped(text: str) -> Group:
    """The words of a term; what stands in brackets, or between `match` and `end`, is a group that begins with that."""
    whole: Group = []
    stack = [whole]
    for word in WORD.findall(text):
        if word in OPEN:
            stack[-1].append(group := [word])
            stack.append(group)
        elif len(stack) > 1 and word == OPEN[str(stack[-1][0])]:
            stack.pop()
        else:
            stack[-1].append(word)
    if len(stack) > 1:
        raise ValueError(f"{stack[-1][0]} does not end")
    return whole


def reached(term: Words, known: Known, given: Sequence[Given]) -> Iterator[tuple[str, int]]:
    """Every name that a term reaches, and how much it is given there; the term itself is given `given`."""
    match term:
        case [] | ["fix" | "cofix" | "forall" | "if", *_]:
            return
        case ["fun", *rest]:
            arrow = rest.index("=>")
            names = variables(rest[:arrow])
            if len(names) <= len(given):
                inside = {**known, **dict(zip(names, given, strict=False))}
                yield from reached(rest[arrow + 1 :], inside, given[len(names) :])
        case ["let", *rest]:
            equals, end = rest.index(":="), closing(rest)
            value = rest[equals + 1 : end]
            yield from reached(value, known, [])
            inside = without(known, rest[:equals])
            if isinstance(rest[0], str) and rest[1] in (":", ":="):
                inside[rest[0]] = (value, known)
            yield from reached(rest[end + 1 :], inside, given)
        case [head, *rest]:
            arguments: list[Given] = [([argument], known) for argument in rest[: first(rest, ":", "<:", "<<:")]]
            for argument, _ in arguments:
                yield from reached(argument, known, [])
            yield from headed(head, known, [*arguments, *given])


def headed(head: "str | Group", known: Known, given: Sequence[Given]) -> Iterator[tuple[str, int]]:
    match head:
        case str():
            yield head, len(given)
            if given and head in known:  # without anything given to it, it was looked at where it was given
                term, there = known[head]
                yield from reached(term, there, given)
        case ["(", str(), ":=", *value]:  # an argument with its name
            yield from reached(value, known, given)
        case ["(", *inner]:
            yield from reached(inner, known, given)
        case ["match", *rest]:
            yield from reached(rest[: first(rest, "as", "in", "return", "with")], known, [])
            branches = rest[rest.index("with") + 1 :]
            if branches.count("|") == 1:
                arrow = branches.index("=>")
                yield from reached(branches[arrow + 1 :], without(known, branches[:arrow]), given)


def without(known: Known, pattern: Words) -> dict[str, Given]:
    """What the variables stand for beside those that a pattern binds."""
    bound = {name for word in pattern for name in (word if isinstance(word, list) else [word]) if isinstance(name, str)}
    nested = any(isinstance(name, list) for word in pattern if isinstance(word, list) for name in word)
    return {} if nested else {name: value for name, value in known.items() if name not in bound}


def variables(binders: Words) -> list[str]:
    """The variables of `fun`: `x y : A`, or `(x y : A) (z : B)`."""
    if ":" in binders:
        return [str(name) for name in binders[: first(binders, ":")]]
    found = []
    for binder in binders:
        words = binder.split(AND) if isinstance(binder, str) else binder[1 : first(binder, ":")]
        if not all(isinstance(word, str) for word in words) or ":=" in words:
            raise ValueError(f"no variables: {binder}")
        found += [str(word) for word in words]
    return found


def first(words: Words, *wanted: str) -> int:
    """Where the first of these words stands; behind all where none does."""
    return next((at for at, word in enumerate(words) if word in wanted), len(words))


def closing(words: Words) -> int:
    """Where the `in` of a `let` stands, past those of the ones within."""
    depth = 1
    for at, word in enumerate(words):
        depth += (word == "let") - (word == "in")
        if not depth:
            return at
    raise ValueError("a let without in")
