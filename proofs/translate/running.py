"""What runs is what was read: every function of `refengine.exact`, once imported, has the code of its own file.

A function may be put in another's place from anywhere; the text of the rules then says nothing of what they do.
"""

import ast
import pkgutil
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

PACKAGES = ("refengine.exact", "refengine.exact.rules")


def replaced() -> Iterator[str]:
    """The names that mean something else than their files say."""
    modules = [
        m.name for package in PACKAGES for m in pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
    ]
    for module in map(import_module, modules):
        text = Path(module.__file__ or "").read_text()
        code = compile(text, module.__file__ or "", "exec", dont_inherit=True)
        yield from (f"{module.__name__}.{name}" for name in _other_names(ast.parse(text), module, code))


def _other_names(tree: ast.Module, module: ModuleType, code: CodeType) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                if not _written(vars(module)[name], code, [name], module):
                    yield name
            case ast.ClassDef(name=name, body=body):
                methods = [one.name for one in body if isinstance(one, ast.FunctionDef)]
                here = vars(vars(module)[name])
                yield from (f"{name}.{m}" for m in methods if not _written(here[m], code, [name, m], module))
            case ast.Assign([ast.Name(name)], ast.Constant(value)) if vars(module)[name] != value:
                yield name
            case ast.ImportFrom(module=str() as whence, names=names) if whence.startswith("refengine"):
                brought = {alias.asname or alias.name: _brought(whence, alias.name) for alias in names}
                yield from (name for name, value in brought.items() if vars(module)[name] is not value)


def _brought(whence: str, name: str) -> object:
    module = import_module(whence)
    return getattr(module, name) if hasattr(module, name) else import_module(f"{whence}.{name}")


def _written(found: object, code: CodeType, path: list[str], module: ModuleType) -> bool:
    """Whether a function is the one that stands there in the file."""
    match found:
        case property():
            found = found.fget
        case cached_property():
            found = found.func
        case classmethod() | staticmethod():
            found = found.__func__
    if type(found) is type(cache(len)):
        found = found.__wrapped__  # type: ignore[attr-defined]
    for name in path:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return isinstance(found, FunctionType) and found.__code__ == code and found.__globals__ is vars(module)
