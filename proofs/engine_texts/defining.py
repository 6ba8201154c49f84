"""That a file of the engine only defines its words while it is imported, and changes none later.

Whatever else it did could put another function in the place of a rule, or of what judges it. Standard library.
"""

import ast

from proofs.translate.importing import MARKED_BY, OWN, more_than_defined
from proofs.translate.reaching import reaching

# What a file may call, or mark a definition with, while it is imported, and where that is from: it makes something, and
# changes nothing.
MAKES: dict[str, tuple[str, ...]] = {
    **MARKED_BY,
    "float": (),
    **dict.fromkeys(("cache", "wraps", "partial"), ("functools",)),
    "njit": ("numba",),
    "overload": ("numba.extending",),
    "triton": ("import triton",),
    "tl": ("import triton.language",),
    "Textless": (OWN,),
}
CALLED = {*MAKES, "triton.jit", "tl.constexpr"} - {"triton", "tl"}
COMPILERS = ("njit", "triton.jit")  # one that is told types would compile at once, and ask functions of the file's own
DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def undefined(text: str, filled: bool = False) -> set[str]:
    """What a file does besides defining, as it is imported, and what its functions may change that is not their own.
    filled: whether they fill the arrays that they are handed, as kernels do."""
    tree = ast.parse(text)
    nodes = (*more_than_defined(tree, MAKES), *others(tree.body), *reaching(tree, filled))
    return {ast.unparse(node) for node in nodes}


def runs_when_made(node: ast.ClassDef) -> list[ast.AST]:
    """Of a class of the file's own that is made while it is imported: what it inherits, calls or marks."""
    marks = [mark for part in node.body for mark in getattr(part, "decorator_list", [])]
    fields = [part for part in node.body if not isinstance(part, ast.FunctionDef)]
    return [*node.bases, *marks, *(inner for part in fields for inner in ast.walk(part) if isinstance(inner, ast.Call))]


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
            found += runs_when_made(node) if MAKES.get(node.name) == (OWN,) else []
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        found += [] if isinstance(node, DEFINES) or text else [node]
        found += [mark for mark in marks if ast.unparse(mark).partition("(")[0] not in CALLED]
        calls = [inner for part in parts for inner in ast.walk(part) if isinstance(inner, ast.Call)]
        found += [call for call in calls if ast.unparse(call.func) not in CALLED]
        found += [call for call in calls if ast.unparse(call.func) in COMPILERS and call.args]
    return found
