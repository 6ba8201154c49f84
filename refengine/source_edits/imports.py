"""Which modules of this package a module imports, read from the source text: nothing is imported to find out.

A check can see an edit only if it loads the edited module, and within a check only those subjects can come out
differently whose own modules load it. What cannot see an edit is not run on it.
"""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from refengine.source_edits import loader
from refengine.source_edits.loader import PACKAGE, source_path


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
    """The modules of this package that a file imports by name, and those that its neighbours in `properties` do."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            out.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            out |= {node.module, *names}
            out |= set() if all(map(_exists, names)) else listed(node.module)
    for name in [name for name in out if name.startswith("properties.")]:
        neighbour = PACKAGE.parent.joinpath(*name.split(".")[:3]).with_suffix(".py")
        out |= names_of(neighbour) if neighbour.is_file() else set()
    parents = {name.rsplit(".", 1)[0] for name in out if "." in name}
    return frozenset(name for name in out | parents if name.split(".")[0] == PACKAGE.name and _exists(name))


@cache
def listed(package: str) -> frozenset[str]:
    """The modules of a package that imports whatever stands in its folder, as its `__path__` tells; else none.

    They count for who imports the listing by name, not for who imports one of the modules.
    """
    if package.split(".")[0] != PACKAGE.name or not _exists(package):
        return frozenset()
    file = source_path(package)
    lists = any(isinstance(node, ast.Name) and node.id == "__path__" for node in ast.walk(ast.parse(file.read_text())))
    return frozenset(f"{package}.{module.stem}" for module in file.parent.glob("[!_]*.py") if lists)


def _exists(module: str) -> bool:
    base = PACKAGE.joinpath(*module.split(".")[1:])
    return base.with_suffix(".py").is_file() or (base / "__init__.py").is_file()
