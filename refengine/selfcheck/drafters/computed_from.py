"""What a check of a drafter is computed from, as digests: the objects that it is made of, their source, the examiners'.

The reader of a checkpoint does not count, except for the check of the reader: what it read does.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from refengine.engine.rules import RULES
from refengine.selfcheck.drafters.laws import cells
from refengine.selfcheck.drafters.laws.cells import CELLS, LOSSY, SHORT, Cell, session
from refengine.selfcheck.drafters.peers import files_of
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.committed import digest, file_digest, module_digest
from refengine.source_tree import FIXTURES, GOLDEN

# Listings of every drafter and rule: what a cell takes from them is in the objects that it is made of.
CATALOGUES = (
    "refengine.selfcheck.drafters.table",
    "refengine.selfcheck.drafters.planted_bugs",
    "refengine.selfcheck.drafters.rows.",
    "refengine.decoder.checkpoints.",
    "refengine.engine.rules",
)
# Cells and shards of bits are kept as numbers: what shows numbers does not make them.
NUMBERS = (*CATALOGUES, "refengine.report.finding")
EXAMINERS = "refengine.selfcheck.drafters.battery"


@cache
def digest_of(check: str, drafter: str) -> str:
    """Of everything that one check of a drafter depends on: "agrees", "loads", or any other, which are of its cells."""
    known = [module_digest(EXAMINERS, CATALOGUES), drafter, repr(ROWS[drafter].plants), repr(ROWS[drafter].not_tested)]
    known += [module_digest(RULES[rule].__module__) for rule in ROWS[drafter].rules]
    for cell in [cell for cell in (*(CELLS[name] for name in SHORT), *LOSSY.values()) if cell.drafter == drafter]:
        known += [repr(cell), parts_of(drafter, cell.threshold, cell.rule)]
    folders = {ROWS[drafter].folder, ROWS[drafter].target} - {""}
    if check == "loads":
        known += [module_digest("refengine.decoder.checkpoints.load"), *(files(FIXTURES / name) for name in folders)]
    elif check == "greedy decoding with":
        known += [files((FIXTURES / ROWS[drafter].target).parent)]
    elif check == "agrees":
        known += [*map(file_digest, files_of(drafter)), files(FIXTURES), files(GOLDEN)]
    return digest(*sorted(known))


@cache
def files(folder: Path) -> str:
    """Of every file of a folder but Python's, and of those below it where they are not recordings."""
    found = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix not in (".py", ".pyc")]
    own = [p for p in found if folder == GOLDEN or not p.is_relative_to(GOLDEN)]
    return digest(*(part for p in own for part in (p.relative_to(folder).as_posix(), p.read_bytes())))


@cache
def parts_of(drafter: str, threshold: float, rule: str) -> str:
    """Of the loop that a cell enumerates: its objects, the configs of its networks, and the sources."""
    modules, seen = {"refengine.selfcheck.drafters.laws.exact_law"}, hashlib.sha256()
    for part in content(session(Cell(drafter, "mixed", rule, threshold)), modules):
        seen.update(part)
    for folder in sorted({ROWS[drafter].folder, ROWS[drafter].target} - {""}):
        for name in ("config.json", "params.json"):
            file = FIXTURES / folder / name
            seen.update(file.read_bytes() if file.is_file() else b"")
    for code in sorted({module_digest(name, NUMBERS) for name in (*modules, cells.__name__)}):
        seen.update(code.encode())
    return seen.hexdigest()


def content(value: Any, modules: set[str]) -> Iterator[bytes]:
    """A live object down to its tensors, and the modules of this package that it is made of. Raises TypeError."""
    kind = value if callable(value) and hasattr(value, "__qualname__") else type(value)
    ours = kind.__module__.startswith("refengine.")
    if ours:
        modules.add(kind.__module__)
    yield f"{kind.__qualname__}(".encode() if ours else f"{kind.__module__}.{kind.__qualname__}(".encode()
    if isinstance(value, Tensor | np.ndarray):
        array = value.detach().cpu().contiguous().numpy() if isinstance(value, Tensor) else value
        yield f"{array.dtype} {array.shape}".encode() + array.tobytes()
    elif isinstance(value, torch.nn.Module):
        yield from content(dict(value.state_dict()), modules)
    elif isinstance(value, partial):
        yield from content((value.func, value.args, value.keywords), modules)
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from content((key, value[key]), modules)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from content(item, modules)
    elif isinstance(value, set | frozenset):
        yield from content(sorted(value), modules)
    elif isinstance(value, str | bytes | int | float | None | torch.device | torch.dtype | range):
        yield repr(value).encode()
    elif kind is not value and ours:
        names = [field.name for field in fields(value)] if is_dataclass(value) else vars(value)
        yield from content({name: getattr(value, name) for name in names}, modules)
    elif kind is not value:
        raise TypeError(f"no digest of a {kind.__module__}.{kind.__qualname__}")
    yield b")"
