"""The words of other files that a text of rules may say: any other may lead to the words of a module, or run a text.

A file imports before its functions, from where a word is at home, and of other libraries what is listed here. So what
replaces, imports, evaluates or looks around (`mock`, `getmembers`, `ForwardRef`, `torch.load`) is refused without being
known. Standard library.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from refengine.source_tree import ROOT

FROM = {  # what may be imported by name
    "collections.abc": "Callable Container Hashable Iterable Iterator Mapping Sequence",
    "contextlib": "suppress",
    "dataclasses": "dataclass field",
    "fractions": "Fraction",
    "functools": "cache cached_property partial wraps",
    "inspect": "signature",
    "math": "isfinite",
    "numba": "njit types",
    "numba.extending": "overload",
    "threading": "Thread",
    "torch": "Tensor",
    "torch.nn.functional": "pad",
    "typing": "Any Literal NamedTuple Protocol TypeAlias TypeVar",
}
WHOLE = {  # what may be imported whole, and its words that may be said
    "itertools": "chain.from_iterable",
    "math": "exp frexp ldexp log",
    "numpy": "arange ascontiguousarray bool_ empty float32 float64 full full_like int64 ndarray ones uint16 uint32"
    " zeros",
    "random": "Random",
    "torch": "Tensor arange as_tensor bfloat16 bincount bool exp exp2 finfo float16 float32 float64 frexp from_numpy"
    " full full_like get_num_threads int64 int8 nn.functional.pad ones ones_like special.xlogy stack tensor uint16"
    " where zeros zeros_like",
    "triton": "cdiv jit next_power_of_2",
    "triton.language": "abs arange cast constexpr debug_barrier float32 float64 full int32 int64 load max min"
    " program_id reshape static_range store sum where zeros",
}
TEXTS = "refengine.exact.", "refengine.engine."


def unlisted(tree: ast.Module) -> Iterator[ast.AST]:
    """Imports of other words, imports in a function, and other words of what is imported whole."""
    whole = dict[str, set[str]]()  # by the name that it has here
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if isinstance(node, ast.Import):
                fine, whole[name] = alias.name in WHOLE and "." not in name, {*WHOLE.get(alias.name, "").split()}
            elif f"{node.module}.".startswith(TEXTS):
                fine = alias.name in words_of(str(node.module))
                if _file(f"{node.module}.{alias.name}"):
                    whole[name] = words_of(f"{node.module}.{alias.name}")
            else:
                fine = alias.name in FROM.get(str(node.module), "").split()
            if not fine or getattr(node, "level", 0) or node not in tree.body:
                yield node
    yield from _others(tree, whole)


def _others(node: ast.AST, whole: dict[str, set[str]]) -> Iterator[ast.AST]:
    """Names of which the first part is a library or a file, and the others are not listed: it alone, too."""
    first, *parts = dotted(node)
    if first in whole:
        if not any(word.split(".") == parts[: word.count(".") + 1] for word in whole[first]):
            yield node
    else:
        for part in ast.iter_child_nodes(node):
            yield from _others(part, whole)


def dotted(node: ast.AST) -> list[str]:
    """The parts of `a.b.c`; one empty part where it is no such name."""
    match node:
        case ast.Name(name):
            return [name]
        case ast.Attribute(of, attr) if dotted(of) != [""]:
            return [*dotted(of), attr]
    return [""]


@cache
def words_of(module: str) -> set[str]:
    """What a text of ours defines, or has from another one; of a folder its files too."""
    found = set[str]()
    for file in filter(None, [_file(module)]):
        found |= {inner.stem for inner in file.parent.glob("*.py") if file.stem == "__init__"}
        for node in ast.parse(file.read_text("utf-8")).body:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Assign() | ast.AnnAssign():
                    found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                case ast.ImportFrom(str() as other, aliases) if f"{other}.".startswith(TEXTS):
                    found |= {a.asname or a.name for a in aliases if a.name in words_of(other)}
    return found


def _file(module: str) -> Path | None:
    place = ROOT / module.replace(".", "/")
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
