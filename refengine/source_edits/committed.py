"""What takes long to compute and is committed: each entry of a JSON file under the digest of what it was computed from.

A digest of source leaves out what changes nothing: comments, docstrings, blank lines, and the names of our modules. In
the place of an import stands the digest of the module that is imported, so that a change anywhere below is seen, and a
file that is moved is not. Standard library alone: `make prove` needs no environment.
"""

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from refengine.files import write_atomic
from refengine.source_edits.imports import OURS, file_of, imported_names, is_module, listed
from refengine.source_tree import PACKAGE

# What keeps and shows results does not make them. The package itself only has a version.
BOOKKEEPING = (
    "refengine.source_edits.committed",
    "refengine.files",
    "refengine.report.journal",
    "refengine.report.step",
    "refengine.report.terminal",
)


@dataclass(frozen=True)
class Committed:
    """A committed file of results.

    file     JSON: an object of entries by key, each with its `digest`; one entry a line
    digest   what the entry of a key is computed from, as it is now
    command  makes again what is stale
    keys     every key that should have an entry, in the order of the file; by default those that have one
    """

    file: Path
    digest: Callable[[str], str]
    command: str
    keys: Callable[[], Iterable[str]] | None = None

    def entries(self) -> dict[str, Any]:
        """Every entry, fresh or stale; none where there is no such file."""
        return _read(self.file, self.file.stat().st_mtime_ns) if self.file.is_file() else {}

    def fresh(self, key: str) -> dict[str, Any] | None:
        """The entry of a key, if it is of what is here now."""
        entry: dict[str, Any] | None = self.entries().get(key)
        return entry if entry is not None and entry["digest"] == self.digest(key) else None

    def stale(self, key: str) -> str:
        """Why the entry of a key does not count, and what makes it again; "" where it counts."""
        if self.fresh(key) is not None:
            return ""
        why = "has changed since its result was committed" if key in self.entries() else "has no committed result"
        return f"{key} {why} (run: {self.command})"

    def every_stale(self) -> list[str]:
        """The keys without an entry that counts."""
        entries = self.entries()
        return [
            key
            for key in (self.keys() if self.keys else entries)
            if entries.get(key, {}).get("digest") != self.digest(key)
        ]

    def write(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the file, all at once. An entry whose key is no more goes."""
        keys = [key for key in (self.keys() if self.keys else entries) if key in entries]
        lines = [f"{json.dumps(key)}: {json.dumps(entries[key], sort_keys=True)}" for key in keys]
        write_atomic(self.file, "{\n" + ",\n".join(lines) + "\n}\n")

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Commit one entry under the digest of now."""
        self.write({**self.entries(), key: {**value, "digest": self.digest(key)}})


@lru_cache(maxsize=16)
def _read(file: Path, changed: int) -> dict[str, Any]:
    """Read once until it changes; nobody may write into what is returned."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def digest(*parts: str | bytes) -> str:
    """Of texts in their order: 16 hexadecimal digits."""
    seen = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        seen.update(b"%d " % len(data) + data)
    return seen.hexdigest()[:16]


def module_digest(module: str, without: tuple[str, ...] = ()) -> str:
    """Of a module of the package and of everything of ours that it imports.

    `without`: modules that are not followed, because what is used of them counts otherwise; a name that ends in a dot
    is of every module below it too. A listing of whatever stands in its folder, named here without a dot, brings
    nothing of what it lists; who imports one of the listed modules by its own name does.
    """
    return file_digest(file_of(module), without)


@cache
def file_digest(file: Path, without: tuple[str, ...] = ()) -> str:
    """`module_digest` of a file that may also be a test or a script of this repository."""
    code, bound = own_code(file)
    below = {name: file_digest(file_of(name), without) for name in imports_of(file, without)}
    return digest(code, *sorted(f"{text} {below.get(name, '')}" for name, text in bound), *sorted(below.values()))


def imports_of(file: Path, without: tuple[str, ...]) -> list[str]:
    """The modules that a file imports and that count; `without` as for `module_digest`."""
    named = {name for name, _ in own_code(file)[1]}
    unlisted = {one for name in without if is_module(name) for one in listed(name)} - named
    return [name for name in imported_names(file) - unlisted if followed(name, without)]


def followed(module: str, without: tuple[str, ...]) -> bool:
    """Whether a module counts as what its importer is computed from."""
    beginnings = tuple(name for name in without if name.endswith("."))
    return module not in (PACKAGE.name, *BOOKKEEPING, *without) and not f"{module}.".startswith(beginnings)


@cache
def own_code(file: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text of one Python file without comments, docstrings, blank lines and imports from modules of ours; and what
    those imports bind: the module, and the name with what it is called here."""
    text = file.read_text("utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    bound: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(text)):
        if _has_docstring(node):
            _blank(lines, node.body[0])  # type: ignore[attr-defined]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            _blank(lines, node)
            bound += [_bound(str(node.module), alias) for alias in node.names]
    return "\n".join(line.rstrip() for line in lines if line.strip()), tuple(bound)


def _bound(module: str, alias: ast.alias) -> tuple[str, str]:
    whole = f"{module}.{alias.name}"
    if is_module(whole):
        return whole, f"a module as {alias.asname or alias.name}"
    return module, f"{alias.name} as {alias.asname or alias.name}"


def _has_docstring(node: ast.AST) -> bool:
    holders = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None


def _blank(lines: list[str], node: ast.stmt) -> None:
    assert node.end_lineno is not None
    lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
