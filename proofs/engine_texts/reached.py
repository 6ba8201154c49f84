"""The texts that the batched rules come to: of every module the definitions that a rule uses, however indirectly.

z3 runs them wherever they are, so they are followed and not listed: a word that is moved to another file is still one
that may not tell where it runs.
"""

import ast
from collections.abc import Iterator

from proofs.gate.tests import bound
from refengine.engine.rules import RULES
from refengine.source_edits.loader import source_path

OURS = "refengine."
COINS = "refengine.engine.coins"  # how a coin is compared with what a rule hands over
DECIDES = ("accept_below", "choose_below")
NUMBERS = ("float", "Fraction")  # what may be called once for all
HOLDS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


class Unreadable(AssertionError):
    """A text uses something that is no definition of one of our files, or that lives from one call to the next."""


def reached() -> dict[str, str]:
    """Module -> its definitions that are reached, in its order, and the imports from elsewhere that they use."""
    found: dict[str, set[ast.stmt]] = {}
    for name, rule in RULES.items():
        follow(rule.__module__, name, found)
    for name in DECIDES:
        follow(COINS, name, found)
    return {
        module: "\n".join(ast.unparse(node) for node in sorted(parts, key=lambda node: node.lineno))
        for module, parts in sorted(found.items())
    }


def follow(module: str, name: str, found: dict[str, set[ast.stmt]]) -> None:
    given = bound(source_path(module))
    nodes = [node for node in given.get(name, []) if not isinstance(node, ast.Import | ast.ImportFrom)]
    if not nodes:
        raise Unreadable(f"{module} defines no {name}")
    for node in set(nodes).difference(found.setdefault(module, set())):
        found[module].add(node)
        for kept in lasting(node):
            raise Unreadable(f"{module}.{name} keeps {ast.unparse(kept)} from one call to the next")
        for word in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & given.keys():
            for binding in given[word]:
                follow_binding(module, word, binding, found)


def follow_binding(module: str, word: str, binding: ast.stmt, found: dict[str, set[ast.stmt]]) -> None:
    match binding:
        case ast.ImportFrom(module=str() as other, names=names) if f"{other}.".startswith(OURS):
            for alias in names:
                if word == (alias.asname or alias.name):
                    follow(other, alias.name, found)
        case ast.Import(names=names) if any(f"{alias.name}.".startswith(OURS) for alias in names):
            raise Unreadable(f"a module is imported whole: {ast.unparse(binding)}")
        case ast.ImportFrom() | ast.Import():
            found[module].add(binding)
        case _:
            follow(module, word, found)


def lasting(node: ast.stmt) -> Iterator[ast.AST]:
    """Where a definition holds what a later call could find changed: a list of the module, a default, a mark."""
    match node:
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            yield from changing(value or node)
        case ast.ClassDef(body=body):
            yield from (part for inner in body for part in lasting(inner))
        case ast.FunctionDef():
            yield from (mark for mark in node.decorator_list if ast.unparse(mark) != "property")
            for part in ast.walk(node):
                match part:
                    case ast.Global() | ast.Nonlocal() | ast.Attribute(ctx=ast.Store() | ast.Del()):
                        yield part
                    case ast.arguments(defaults=plain, kw_defaults=named):
                        yield from (part for value in (*plain, *named) if value for part in changing(value))


def changing(value: ast.AST) -> Iterator[ast.AST]:
    """What is made when a file is read, and is no number."""
    for part in ast.walk(value):
        if isinstance(part, HOLDS) or (isinstance(part, ast.Call) and ast.unparse(part.func) not in NUMBERS):
            yield part
