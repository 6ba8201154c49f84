"""That a file of the engine only defines its words while it is imported.

Whatever else it did could put another function in the place of a rule, or of what judges it. Standard library.
"""

import ast
from collections.abc import Iterator

from proofs.translate.forms import changed_at_import

# What a file may call, or mark a definition with, while it is imported: it makes something, and changes nothing.
MAKES = {"float", "Textless", "dataclass", "field", "property", "cache", "wraps", "partial", "njit", "overload"}
MAKES |= {"triton.jit", "tl.constexpr"}
# Where those are from that are no words of the language, nor a file's own class.
LIBRARIES = ("dataclasses", "functools", "numba", "numba.extending")
IMPORTED = {("triton", "triton"), ("tl", "triton.language")}
DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
MADE_BY = ("__init__", "__new__", "__post_init__")  # methods that run where a class is called


def undefined(text: str) -> set[str]:
    """What a file does besides defining, as it is imported."""
    tree = ast.parse(text)
    return {ast.unparse(node) for node in (*changed_at_import(tree), *others(tree.body), *own_makers(tree))}


def others(body: list[ast.stmt]) -> list[ast.AST]:
    """Statements and calls: of a function its marks, its defaults and its types run."""
    found: list[ast.AST] = []
    for node in body:
        parts: list[ast.AST] = [node]
        marks = getattr(node, "decorator_list", [])
        if isinstance(node, ast.FunctionDef):
            parts = [*marks, node.args, *filter(None, [node.returns])]
        if isinstance(node, ast.ClassDef):
            parts = [*marks, *node.bases, *node.keywords]
            found += others(node.body)
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        found += [] if isinstance(node, DEFINES) or text else [node]
        found += [mark for mark in marks if ast.unparse(mark).partition("(")[0] not in MAKES]
        calls = [inner for part in parts for inner in ast.walk(part) if isinstance(inner, ast.Call)]
        found += [call for call in calls if ast.unparse(call.func) not in MAKES]
    return found


def own_makers(tree: ast.Module) -> Iterator[ast.AST]:
    """What gives a word of MAKES another meaning, and code of the file's own that runs where it is called."""
    words = {word.partition(".")[0] for word in MAKES}
    for node in ast.walk(tree):
        match node:
            case ast.Import(aliases) if {(a.asname or a.name, a.name) for a in aliases} & IMPORTED:
                continue
            case ast.ImportFrom(module, aliases) if module in LIBRARIES and not any(a.asname for a in aliases):
                continue
            case ast.Import(aliases) | ast.ImportFrom(names=aliases):
                yield from (node for alias in aliases if (alias.asname or alias.name) in {*words, "*"})
            case ast.FunctionDef(name=name) | ast.Name(name, ast.Store()) if name in words:
                yield node
            case ast.ClassDef(name=name, body=body) if name in words:
                yield from (inner for inner in body if getattr(inner, "name", "") in MADE_BY)
