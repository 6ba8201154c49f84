"""Terms of Gallina with what must be known of their types, and what is asked of Python's syntax trees."""

import ast
import re
from dataclasses import dataclass


class Untranslated(ValueError):
    """A piece of Python that this file has no words for."""


def refuse(node: ast.AST, why: str = "no words for it") -> Untranslated:
    begins = ast.unparse(node).partition("\n")[0].rstrip(":")
    return Untranslated(f"line {getattr(node, 'lineno', '?')}: {begins}: {why}")


@dataclass(frozen=True)
class Term:
    """A Gallina term and its type: num, float, nat, node, token, bool, row, rows, block, seq, option, pair, set,
    target, drafter, rule, chance, ?; "dict num" is one by nodes, "nat*token" a pair."""

    text: str
    type: str = "?"


@dataclass(frozen=True)
class Substituted:
    """Words replaced in a term; a name is replaced where it stands alone."""

    values: dict[str, str]

    def text(self, term: str) -> str:
        return re.sub(r"[\w']+", lambda word: self.values.get(word[0], word[0]), term)


def paren(text: str) -> str:
    return text if text.isidentifier() or (text[0] in "([" and balanced(text)) else f"({text})"


def balanced(text: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return at == len(text) - 1
    return False


def element(t: Term) -> str:
    return "row" if t.type == "rows" else t.type.removeprefix("seq ") if t.type.startswith("seq ") else "?"


def as_node(t: Term) -> Term:
    """A node as it is named here: its place plus one."""
    if t.type not in ("nat", "node"):
        raise Untranslated(f"{t.text}: a node is wanted, and this is a {t.type}")
    return t if t.type == "node" else Term(f"{paren(t.text)}.+1", "node")


def same(node: ast.AST, before: str, now: str) -> str:
    """The type of a variable in all of its life: an empty list may come to have items, and nothing else changes."""
    if now != before and not {before, now} & {"?", "seq ?"}:
        raise refuse(node, f"a {now} where there was a {before}")
    return before if now.endswith("?") else now


def combined(node: ast.expr, op: ast.operator, a: Term, b: Term) -> Term:
    kinds = {a.type, b.type} - {"seq ?"}  # of an empty one
    if isinstance(op, ast.Add) and len(kinds) == 1 and {a.type[:4], b.type[:4]} == {"seq "}:
        return Term(f"({a.text} ++ {b.text})", kinds.pop())
    sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(op))
    if sign is None or not {a.type, b.type} <= {"num", "literal"} or a.type == b.type == "literal":
        raise refuse(node, f"arithmetic on {a.type} and {b.type}")
    return Term(f"({a.text} {sign} {b.text})", "num")


# What `==` is the same of in Python and here: a list is no tuple there, and a number that a text counts to, as in
# `len(tokens) == 25`, is a case that no small block has.
COMPARED = ({"num", "literal"}, {"num", "float"}, {"nat", "literal"}, {"nat", "node"}, {"token"}, {"bool"})
ORDERED = ({"nat", "literal"}, {"num", "literal"}, {"num", "float"})  # compared with a fraction, a float is not rounded


def comparison(node: ast.expr, op: ast.cmpop, a: Term, b: Term) -> Term:
    kinds = {a.type, b.type}
    counts = kinds == {"nat", "literal"} and not {a.text, b.text} & {"0"}
    if counts or not any(kinds <= compared for compared in COMPARED):
        raise refuse(node, f"a comparison of {a.type} and {b.type}")
    if kinds == {"node", "nat"}:
        a, b = as_node(a), as_node(b)
    scope = "%N" if "nat" in kinds else ""
    order = {ast.Lt: ("<", a, b), ast.Gt: ("<", b, a), ast.LtE: ("<=", a, b), ast.GtE: ("<=", b, a)}.get(type(op))
    if order and any(kinds <= compared for compared in ORDERED):
        less, low, high = order
        return Term(f"({low.text} {less} {high.text}){scope}", "bool")
    sign = {ast.Eq: "==", ast.NotEq: "!="}.get(type(op))
    if sign is None:
        raise refuse(node, f"a comparison of {a.type} and {b.type}")
    return Term(f"({a.text} {sign} {b.text}{scope if b.type == 'literal' else ''})", "bool")


def pattern(names: list[str]) -> str:
    return "tt" if not names else names[0] if len(names) == 1 else f"({', '.join(names)})"


def names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def used(body: list[ast.stmt]) -> set[str]:
    """The names that a body reads or assigns; those of a lambda or a comprehension are its own."""
    return set().union(*(_free(s) for s in body))


def _free(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(name):
            return {name}
        case ast.Lambda(args=arguments):
            own = {a.arg for a in arguments.args}
        case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
            own = set[str]().union(*(names(g.target) for g in generators[1:]), names(generators[0].target))
            first = _free(generators[0].iter)  # it is read where the comprehension stands
            return first | (set[str]().union(*map(_free, ast.iter_child_nodes(node))) - own)
        case _:
            own = set()
    return set[str]().union(*map(_free, ast.iter_child_nodes(node))) - own


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that a body assigns, and those that grow in it."""
    found = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found | grown(body)


def grown(body: list[ast.stmt]) -> set[str]:
    """The names of lists that a body appends to, and of dicts to an entry of which it assigns."""
    nodes = [n for s in body for n in ast.walk(s)]
    holders = [n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    calls = [n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    holders += [method.value for method in calls if method.attr == "append"]
    return {holder.id for holder in holders if isinstance(holder, ast.Name)}


def truth(node: ast.AST, t: Term) -> str:
    """What stands as a condition: a list holds where it has items; a number would where it is not 0, and is refused."""
    if t.type.startswith("seq "):
        return f"(size {paren(t.text)} != 0%N)"
    if t.type != "bool":
        raise refuse(node, f"a condition of type {t.type}")
    return t.text


def leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
