"""What a text may change when one of its functions runs: its own variables and what hangs on them, and nothing else.

A word of a module could else be another one from some call on: a function that makes rows, or looks at them, may put
another function in the place of what a rule reads. So what is stored into, or told to change itself, begins at a
variable of the function; a module is no value, and has no other name; nothing leads to the words of a module but its
name. Standard library.
"""

import ast
from collections.abc import Iterator

from refengine.source_tree import ROOT

CHANGING = {"globals", "locals", "vars", "setattr", "delattr", "exec", "eval", "compile", "__import__", "__builtins__"}
CHANGES_ITSELF = {"update", "setdefault", "append", "extend", "insert", "pop", "popitem", "remove", "clear", "sort"}
CHANGES_ITSELF |= {"reverse", "add", "discard", "appendleft", "popleft", "rotate", "cache_clear"}
# Attributes that lead to the words of a module, or change how a library does everything.
LEADS = {"f_globals", "f_locals", "f_builtins", "f_back", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "modules"}
LEADS |= {"_getframe", "currentframe", "getmodule", "meta_path", "path_hooks", "settrace", "setprofile"}
PLAIN = {"__name__", "__module__", "__init__", "__qualname__"}
LISTING = {"import_module"}  # of the files of a folder: in `__init__.py` alone


def reaching(tree: ast.Module, lists: bool = False) -> Iterator[ast.AST]:
    """Nodes that may change what is no function's own. lists: whether the text may import what it lists."""
    modules = {name for node in ast.walk(tree) for name in modules_of(node)}
    bases = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()) if name in modules and id(node) not in bases:
                yield node  # another name for it
            case ast.Name(name) if name in CHANGING or (name in LISTING and not lists):
                yield node
            case ast.Attribute(attr=name) if name in LEADS or (name.startswith("__") and name not in PLAIN):
                yield node
            case ast.Attribute(ast.Name(name), attr) if name in modules and attr.startswith(("set_", "manual_seed")):
                yield node
            case ast.Call(ast.Name("getattr"), [_, *named]) if not all(map(_plainly, named[:1])):
                yield node
    for function in (f for top in tree.body for f in outermost(top)):
        yield from _stored(function, modules)


def modules_of(node: ast.AST) -> Iterator[str]:
    """The names that an import gives to whole modules; of other libraries those that `import` gives."""
    match node:
        case ast.Import(aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.ImportFrom(str() as module, aliases) if f"{module}.".startswith("refengine."):
            folder = ROOT / module.replace(".", "/")
            yield from (a.asname or a.name for a in aliases if (folder / f"{a.name}.py").is_file())
            yield from (a.asname or a.name for a in aliases if (folder / a.name).is_dir())


def outermost(node: ast.AST) -> list[ast.FunctionDef]:
    """The functions and methods of a statement, without those that stand in another one."""
    if isinstance(node, ast.FunctionDef):
        return [node]
    return [function for inner in ast.iter_child_nodes(node) for function in outermost(inner)]


def _stored(function: ast.FunctionDef, modules: set[str]) -> Iterator[ast.AST]:
    nodes = [*ast.walk(function)]
    given = {node.arg for node in nodes if isinstance(node, ast.arg)}
    made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own = (given | made) - modules
    own -= {name for node in nodes for name, value in _pairs(node) if _borrowed(value, own)}
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                if root(node) not in own:
                    yield node
            case ast.Call(ast.Attribute(value, attr)) if attr in CHANGES_ITSELF and root(value) not in own:
                yield node


def _borrowed(value: ast.expr, own: set[str]) -> bool:
    """Another name for something of the module."""
    return isinstance(value, ast.Name | ast.Attribute | ast.Subscript) and root(value) not in own


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets, value):
            yield from ((n.id, value) for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and _is_given(n))
        case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
            yield name, value


def _is_entry(node: ast.expr) -> bool:
    """Of a table of the function's own, which is made where it lacks."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault"


def _plainly(named: ast.expr) -> bool:
    return isinstance(named, ast.Constant) and isinstance(named.value, str) and not named.value.startswith("_")


def _is_given(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def root(node: ast.expr) -> str:
    """The variable at which it begins; "" where it begins at none."""
    while isinstance(node, ast.Attribute | ast.Subscript) or _is_entry(node):
        node = node.func if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
    return node.id if isinstance(node, ast.Name) else ""
