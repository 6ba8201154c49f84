"""What a name of a module stands for, as far as it is seen: a constant, a module, or something that may be changed."""

import ast
from collections.abc import Set
from functools import cache

from refengine.source_tree import ROOT

SCOPES = ast.FunctionDef | ast.Lambda
READS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def given(node: ast.AST) -> set[str]:
    """The names that a statement binds where it stands; not those that a function, lambda or reading in it binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name.partition(".")[0] for alias in aliases}
        case ast.Name(name, ast.Store()) | ast.ExceptHandler(name=str() as name):
            return {name} | _inside(node)
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
            return {name} | _inside(node)
    return set() if isinstance(node, SCOPES | READS) else _inside(node)


def _inside(node: ast.AST) -> set[str]:
    return set[str]().union(*map(given, ast.iter_child_nodes(node)))


def modules(tree: ast.Module) -> set[str]:
    """The names of modules of ours."""
    found = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("refengine."):
            folder = ROOT / str(node.module).replace(".", "/")
            there = (folder / f"{alias.name}.py" for alias in node.names)
            found |= {a.asname or a.name for a, file in zip(node.names, there, strict=True) if file.is_file()}
    return found


@cache
def constants(text: str, objects: bool) -> set[str]:
    """The names of what nobody can change: numbers, texts, tuples of them; objects: or of what may be handed on, since
    attributes are stored on `self` alone. Of an import what they are where they come from; of another library those in
    capitals."""
    found = set[str]()
    for top in ast.parse(text).body:
        match top:
            case ast.Assign([target], value) | ast.AnnAssign(target, _, ast.expr() as value):
                found |= given(target) if fixed(value, found, objects) else set()
            case ast.ImportFrom(str() as module, aliases) if f"{module}.".startswith("refengine."):
                file = ROOT / f"{module.replace('.', '/')}.py"
                there = constants(file.read_text("utf-8"), objects) if file.is_file() else set[str]()
                found |= {alias.asname or alias.name for alias in aliases if alias.name in there}
            case ast.ImportFrom(_, aliases):
                found |= {alias.asname or alias.name for alias in aliases if alias.name.isupper()}
    return found


def fixed(value: ast.expr, known: Set[str], objects: bool) -> bool:
    match value:
        case ast.Constant() | ast.Attribute(ast.Name("math" | "torch")):
            return True
        case ast.Name(name):
            return name in known
        case ast.Subscript(ast.Name(), ast.Constant()):
            return objects
        case ast.Call(func, args):
            made = ast.unparse(func).rpartition(".")[2]
            of_numbers = made in ("float", "Fraction", "frozenset", "tuple", "constexpr")
            if of_numbers and not any(isinstance(n, ast.Name) for a in args for n in ast.walk(a)):
                return True
            return objects and (of_numbers or (made[0].isupper() and not made.isupper()))
        case ast.Tuple(parts) | ast.BoolOp(_, parts):
            return all(fixed(part, known, objects) for part in parts)
        case ast.BinOp(left, _, right):
            return fixed(left, known, objects) and fixed(right, known, objects)
        case ast.UnaryOp(_, part) | ast.Starred(part):
            return fixed(part, known, objects)
    return False
