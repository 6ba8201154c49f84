"""Which modules of this package a module imports, read from the source text: nothing is imported to find out.

A check can see an edit only if it loads the edited module, and within a check only those subjects can come out
differently whose own modules load it. What cannot see an edit is not run on it.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from refengine.source_edits import loader
from refengine.source_edits.loader import source_path
from refengine.source_tree import PACKAGE, ROOT

# The folders of this repository that hold Python modules; the package itself first.
OURS = (PACKAGE.name, "properties", "proofs", "statistical_tests", "benchmarks")


def touched(modules: Iterable[str]) -> bool:
    """Whether an edit of this process is in these modules or in what they import; True where nothing is edited."""
    return not loader.edited or any(loader.edited & imported(module) for module in modules)


@cache
def imported(module: str) -> frozenset[str]:
    """Every module of this package that importing `module` imports, itself included."""
    found: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(_names(name))
    return frozenset(found)


@cache
def _names(module: str) -> frozenset[str]:
    return names_of(source_path(module))


@cache
def names_of(file: Path) -> frozenset[str]:
    """The modules of this package that a file imports, their packages included, and those that its neighbours among
    the tests and proofs do."""
    names: set[str] = set()
    pending, seen = [file], {file}
    while pending:
        names |= (found := imported_names(pending.pop()))
        near = {file_of(name) for name in found if not name.startswith(PACKAGE.name)} - seen
        pending += near
        seen |= near
    parents = {name.rsplit(".", 1)[0] for name in names if "." in name}
    return frozenset(name for name in names | parents if name.split(".")[0] == PACKAGE.name and name != PACKAGE.name)


@cache
def imported_names(file: Path) -> frozenset[str]:
    """The modules of this repository that a file imports by name, anywhere in it: the one that holds each name."""
    found = set()
    for name in dotted(ast.parse(file.read_text("utf-8"))):
        holder = name
        while "." in holder and not is_module(holder):
            holder = holder.rpartition(".")[0]
        if is_module(holder):
            found |= {holder} if name == holder else {holder, *listed(holder)}
    return frozenset(found)


@cache
def listed(package: str) -> frozenset[str]:
    """The modules of a package that imports whatever stands in its folder, as its `__path__` tells; else none.

    They count for who imports the listing by name, not for who imports one of the modules.
    """
    file = file_of(package)
    if file.name != "__init__.py":
        return frozenset()
    lists = any(isinstance(node, ast.Name) and node.id == "__path__" for node in ast.walk(ast.parse(file.read_text())))
    return frozenset(f"{package}.{module.stem}" for module in file.parent.glob("[!_]*.py") if lists)


def dotted(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a text imports, anywhere in it; `from a import b` is a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def file_of(module: str) -> Path:
    """The file of a module of this repository: of the package, or of the folders beside it. Raises ValueError."""
    first = module.partition(".")[0]
    base = (PACKAGE.parent if first == PACKAGE.name else ROOT).joinpath(*module.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    raise ValueError(f"there is no module {module}")


@cache
def is_module(name: str) -> bool:
    """Whether a dotted name is a module of this repository."""
    if name.split(".")[0] not in OURS:
        return False
    try:
        return bool(file_of(name))
    except ValueError:
        return False
