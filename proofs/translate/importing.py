"""What a file does while it is imported, besides defining its words: a list of what it may do, and all else is told.

Code runs at an import without a call: a class that inherits another has a method of that one run, an index, an operator
or a look at a name may be a method with two underscores, a mark is a function, and so is a word that has a library's
name. So a file has no such method but those of objects, of which it makes none that has any; it inherits and imports
what is listed, and has the words that it calls from where they are at home. Standard library.
"""

import ast
from collections.abc import Iterator, Mapping

from proofs.translate.forms import parts

CALLED = "__call__"  # of what is made while a file is imported, and called later
OF_OBJECTS = {f"__{name}__" for name in ("init", "post_init", "len", "iter", "getitem", "hash", "bool", "float", "int")}
OF_OBJECTS |= {f"__{name}__" for name in ("index", "eq", "lt", "le", "gt", "ge", "neg", "add", "radd", "sub", "rsub")}
OF_OBJECTS |= {CALLED, "__mul__", "__rmul__", "__truediv__"}
TYPES = {"Protocol": "typing", "NamedTuple": "typing", "Sequence": "collections.abc"}  # that may be inherited
ERRORS = {"Exception", "ValueError"}
MODULES = {"collections.abc", "contextlib", "dataclasses", "fractions", "functools", "inspect", "itertools", "math"}
MODULES |= {"numba", "numba.extending", "numpy", "random", "sys", "threading", "torch", "torch.nn.functional"}
MODULES |= {"triton", "triton.language", "types", "typing"}
TEXTS = ("refengine.exact.", "refengine.engine.")
OWN = "its own class"
# Where the words are from that every text may mark a class with: of the language, from nowhere.
MARKED_BY: dict[str, tuple[str, ...]] = {"dataclass": ("dataclasses",), "field": ("dataclasses",), "property": ()}


def more_than_defined(tree: ast.Module, homes: Mapping[str, tuple[str, ...]]) -> Iterator[ast.AST]:
    """homes: where each word may be from that the file calls or marks with; of the language, from nowhere."""
    todo: list[ast.AST] = [*tree.body]
    of_objects = set[int]()
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred) and not isinstance(node.ctx, ast.Load):
            yield node  # what is changed is no variable of its own
        if isinstance(node, ast.NamedExpr):
            yield node  # it may be another word
        if isinstance(node, ast.ClassDef):
            yield from (keyword.value for keyword in node.keywords)
            yield from (base for base in node.bases if not _may_be_inherited(base, tree))
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in OF_OBJECTS]
            of_objects |= {id(method) for method in methods if node.name not in homes or method.name == CALLED}
        if isinstance(node, ast.Import | ast.ImportFrom) and not _may_be_imported(node):
            yield node
        dunder = any(name.startswith("__") and name != "__all__" for name, _ in given_by(node))
        if dunder and id(node) not in of_objects:
            yield node
        todo += (part for name, part in parts(node) if not (name == "body" and isinstance(node, ast.FunctionDef)))
    for node in ast.walk(tree):
        yield from (node for name, home in given_by(node) if name == "*" or home not in homes.get(name, (home,)))


def given_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a node binds, and where each is from: "a" of `from a import b`, "import a.b" of `import a.b as b`;
    of what has another name there, that too."""
    match node:
        case ast.Import(aliases):
            yield from ((a.asname or a.name.partition(".")[0], f"import {a.name}") for a in aliases)
        case ast.ImportFrom(module, aliases):
            yield from ((a.asname or a.name, f"{module}" + f".{a.name}" * bool(a.asname)) for a in aliases)
        case ast.ClassDef(name=name):
            yield name, OWN
        case ast.FunctionDef(name=name) | ast.Name(name, ast.Store()):
            yield name, ""


def _may_be_inherited(base: ast.expr, tree: ast.Module) -> bool:
    """A class of the texts, or one of a library that runs nothing of the heir's."""
    base = base.value if isinstance(base, ast.Subscript) else base  # as of `Sequence[Any]`
    if not isinstance(base, ast.Name):
        return False
    homes = {home for node in ast.walk(tree) for name, home in given_by(node) if name == base.id}
    if base.id in ERRORS:
        return not homes
    if base.id in TYPES:
        return homes == {TYPES[base.id]}
    return homes == {OWN} or (len(homes) == 1 and f"{homes.pop()}.".startswith(TEXTS))


def _may_be_imported(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        named = [node.module or ""] if not node.level else [""]
    else:
        named = [alias.name for alias in node.names]
    return all(name in MODULES or f"{name}.".startswith("refengine.") for name in named)
