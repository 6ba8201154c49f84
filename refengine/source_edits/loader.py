"""Run the package with a bug in it: an import hook serves edited source. No file on disk is touched.

A bug is applied in a fresh process, before the module that it edits is imported. An edit whose old text is not found
exactly once is refused: the source has moved on, and a bug that changes nothing would look like a bug that survived.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from refengine.source_edits.edit import Edit
from refengine.source_tree import PACKAGE

edited: set[str] = set()  # the modules that this process serves with edits


def source_path(module: str) -> Path:
    """The file of a module of this package, found without importing anything."""
    first, *rest = module.split(".")
    if first != PACKAGE.name:
        raise ValueError(f"{module} is no module of {PACKAGE.name}: only its own source can be edited")
    base = PACKAGE.joinpath(*rest)
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    raise ValueError(f"there is no module {module}")


def edited_source(module: str, edits: Sequence[Edit]) -> str:
    """The source of `module` with the edits that concern it, applied in order."""
    text = source_path(module).read_text()
    for edit in edits:
        if edit.module != module:
            continue
        found = text.count(edit.old)
        if found != 1:
            raise ValueError(f"{module}: the text to be edited occurs {found} times, not once: {edit.old!r}")
        text = text.replace(edit.old, edit.new)
    return text


def install_sources(sources: dict[str, str]) -> None:
    """Serve these modules with these whole texts from now on."""
    for module, text in sources.items():
        if module in sys.modules:
            raise RuntimeError(f"{module} is already imported: a bug is applied in a fresh process")
        ast.parse(text, filename=f"{module} (edited)")
    sys.meta_path.insert(0, _Edited(sources))
    edited.update(sources)


def edited_module(module: str, edits: Sequence[Edit]) -> ModuleType:
    """The edited module as a separate object, beside the original.

    Edits of other modules hold for what it imports from them (`from module import name`); all else is the original.
    """
    others = {edit.module for edit in edits} - {module}
    beside = {name: edited_module(name, [edit for edit in edits if edit.module == name]) for name in sorted(others)}
    edited = ModuleType(f"{module} (edited)")
    edited.__file__ = str(source_path(module))
    with _standing_in(beside):
        exec(compile(edited_source(module, edits), edited.__file__, "exec"), edited.__dict__)
    return edited


@contextmanager
def _standing_in(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Imports by name find these modules in the place of the originals, which come back afterwards."""
    originals = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, original in originals.items():
            if original is None:
                del sys.modules[name]
            else:
                sys.modules[name] = original


class _Edited(MetaPathFinder):
    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in self.sources:
            return None
        file = str(source_path(name))
        return spec_from_file_location(name, file, loader=_EditedLoader(name, file, self.sources[name]))


class _EditedLoader(SourceFileLoader):
    def __init__(self, name: str, file: str, text: str) -> None:
        super().__init__(name, file)
        self.text = text

    def get_code(self, fullname: str) -> CodeType | None:
        """Compiled afresh: the bytecode cache on disk belongs to the unedited source."""
        return compile(self.text, self.path, "exec", dont_inherit=True)
