"""What the names in a module stand for, read from what stands at its top.

The translator reads `residual` as the function of that name where it is defined, `sum` as Python's, and the function of
a rule as what its card runs. So a module may hold imports under their own names, undecorated functions, its card, and
`ROOT`: nothing else, and no name twice or of one of Python's own words.
"""

import ast
import builtins
from collections import Counter
from collections.abc import Iterator

from proofs.translate.terms import Untranslated, refuse

# Words that the translator gives a meaning, and that are no functions which it translates: where they come from.
HOMES = {"Fraction": "fractions", "Shifted": "refengine.exact.chance"}
HOMES |= dict.fromkeys(("ROOT", "Round", "Block"), "refengine.exact.block")
CLASSES = {"Block": "dataclass(frozen=True)", "Round": "dataclass(frozen=True)", "Drafter": ""}


def check(file: str, tree: ast.Module) -> None:
    """Raises Untranslated where a name may stand for something else than it seems to."""
    given: Counter[str] = Counter()
    for node in tree.body:
        for name, home in bound(file, node):
            given[name] += 1
            if HOMES.get(name, home) != home:
                raise refuse(node, f"{name} is not that of {HOMES[name]}")
    for name, times in given.items():
        if times > 1 or hasattr(builtins, name):
            raise Untranslated(f"{file}.py gives the name {name} to something else")


def bound(file: str, node: ast.stmt) -> Iterator[tuple[str, str]]:
    """The names that a statement at the top of a module gives, and the module that each is of."""
    here = f"refengine.exact.{file.replace('/', '.')}"
    match node:
        case ast.Expr(ast.Constant(str())):
            return
        case ast.ImportFrom(module=str(module), names=names, level=0) if all(n.asname is None for n in names):
            yield from ((n.name, module) for n in names)
        case ast.FunctionDef(name=name, decorator_list=[]):
            yield name, here
        case ast.ClassDef(name=name, decorator_list=marks) if CLASSES.get(name) == ", ".join(map(ast.unparse, marks)):
            yield name, here
        case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name("TypeAlias")):
            yield name, here
        case ast.Assign(targets=[ast.Name("CARD")], value=ast.Call(func=ast.Name("Card"), keywords=given)):
            if not any(k.arg == "rule" and ast.unparse(k.value) == file.rpartition("/")[2] for k in given):
                raise refuse(node, "the card is of another rule")
            yield "CARD", here
        case ast.Assign(targets=[ast.Name("ROOT")]) if ast.unparse(node) == "ROOT = -1":
            yield "ROOT", here
        case _:
            raise refuse(node, "this may change what a name stands for")
