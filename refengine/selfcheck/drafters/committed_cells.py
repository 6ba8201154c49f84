"""Every exact-law cell under every policy, run beforehand: too long for the report, which shows what was found.

`python -m refengine.selfcheck.drafters.committed_cells [DRAFTER ...]` runs what `benchmarks/results/cells.json` lacks
or holds stale, laws before planted bugs. The file is rewritten after every cell, so a run that is cut off goes on where
it was.

A result counts under the digest of what it was computed from: the loaded drafter and target, tensor for tensor and
setting for setting; the source of every module that they, the loop, the rule and the enumeration come from, and what
those import; the policies and the cell. Comments, docstrings and the names of modules do not count, nor does the reader
of a checkpoint: what it read does. Versions of torch and transformers do not either. Under another digest a result is
`not tested`.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from refengine.report.finding import Finding, Quantity, Recipe
from refengine.selfcheck.drafters.battery import LOSSLESS, law, planted
from refengine.selfcheck.drafters.cells import CELLS, EXACT, MOVED, Cell, session
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_edits.loader import source_path
from refengine.source_tree import FIXTURES, RESULTS

RESULT = RESULTS / "cells.json"
LAW, PLANTED = "law", "planted"
COUNTED = ("rounds enumerated", "live states equal to a recompute", "live states that differ")
DISTANCES = ("tv of tokens and rounds", "tv of tokens", "live states that differ from a recompute")
COMMAND = "python -m refengine.selfcheck.drafters.committed_cells"


# --- running ---------------------------------------------------------------------------------------------------------


def main(chosen: list[str]) -> None:
    """Run every cell whose result is missing or stale, of the drafters named or of all."""
    torch.set_num_threads(1)
    results = committed()
    cells = [name for name in CELLS if not chosen or CELLS[name].drafter in chosen]
    todo = [(what, name) for what in (LAW, PLANTED) for name in cells if not current(results, what, name)]
    for number, (what, name) in enumerate(todo, 1):
        results.setdefault(name, {})[what] = {"digest": digest(what, name), **found(what, name)}
        save(results)
        print(f"[{number}/{len(todo)}] {what} {name}", file=sys.stderr, flush=True)


def found(what: str, name: str) -> dict[str, Any]:
    """What a cell gives, as it is committed."""
    if what == LAW:
        (finding,) = law(name)
        values = {key: number(value) for key, value in finding.numbers.items()}
        return {"consistent": finding.verdict == "consistent", **values}
    distances = {finding.id: [number(finding.numbers[key]) for key in DISTANCES] for finding in planted(name)}
    return {found.rpartition("/")[2]: values for found, values in distances.items()}  # the plant's name ends the id


def number(value: Any) -> float:
    """To six digits."""
    plain: float = float(f"{value.value:.6g}") if isinstance(value, Quantity) else value
    return plain


def committed() -> dict[str, dict[str, Any]]:
    """By cell: what was found of its law and of the bugs planted in it, each with its digest."""
    result: dict[str, dict[str, Any]] = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    return result


def save(results: Mapping[str, Any]) -> None:
    """One line a cell, in the order of the cells; whole or not at all."""
    lines = (f"{json.dumps(name)}: {json.dumps(results[name], sort_keys=True)}" for name in CELLS if name in results)
    beside = RESULT.with_suffix(".part")
    beside.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(beside, RESULT)


def current(results: Mapping[str, Any], what: str, name: str) -> bool:
    return bool(results.get(name, {}).get(what, {}).get("digest") == digest(what, name))


# --- what it was computed from ---------------------------------------------------------------------------------------


@cache
def digest(what: str, name: str) -> str:
    """Of everything that a cell's result depends on."""
    cell = CELLS[name]
    known = [repr(cell), parts_of(cell.drafter, cell.threshold, cell.rule)]
    if what == PLANTED:
        plants = ROWS[cell.drafter].plants
        known += [repr(replace(plant, edit=replace(plant.edit, module=""))) for plant in plants]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


@cache
def parts_of(drafter: str, threshold: float, rule: str) -> str:
    """Of the loop that a cell enumerates: its objects, the configs of its networks, and the sources."""
    modules, seen = {"refengine.selfcheck.drafters.exact_law"}, hashlib.sha256()
    for part in content(session(Cell(drafter, "mixed", rule, threshold)), modules):
        seen.update(part)
    for folder in {ROWS[drafter].folder, ROWS[drafter].target} - {""}:
        for name in ("config.json", "params.json"):
            file = FIXTURES / folder / name
            seen.update(file.read_bytes() if file.is_file() else b"")
    for one in sorted(source(module) for module in modules):
        seen.update(one.encode())
    seen.update(ast.dump(tree("refengine.selfcheck.drafters.cells", imports=False)).encode())
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


@cache
def source(module: str) -> str:
    """A digest of the code of a module of this package without its comments and docstrings, in which the digest of a
    module stands for the name that it is imported by."""
    parsed = tree(module)
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("refengine."):
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            node.module = " ".join(source(name) for name in named if is_module(name))
    return hashlib.sha256(ast.dump(parsed).encode()).hexdigest()


def is_module(name: str) -> bool:
    try:
        return source_path(name).name != "__init__.py"
    except ValueError:
        return False


def tree(module: str, imports: bool = True) -> ast.Module:
    """A module without its comments and docstrings, and without its imports if these do not count."""
    parsed = ast.parse(source_path(module).read_text())
    if not imports:
        parsed.body = [node for node in parsed.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    for node in ast.walk(parsed):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return parsed


# --- what the report shows -------------------------------------------------------------------------------------------


def shown(drafter: str) -> list[Finding]:
    """The committed results of one drafter: consistent or violated as they were found, not tested where they are not
    of this source."""
    results, cells = committed(), [name for name, cell in CELLS.items() if cell.drafter == drafter]
    laws = {name: results[name][LAW] for name in cells if current(results, LAW, name)}
    bugs = {name: results[name][PLANTED] for name in cells if current(results, PLANTED, name)}
    moves, bad = _moves(bugs), [name for name, entry in laws.items() if not entry["consistent"]]
    missing = [name for name in cells if name not in laws or name not in bugs]
    bad += [f"{bug}: it shows in no cell" for bug, seen in moves.items() if not missing and not any(seen.values())]
    reason = f"{len(missing)} of {len(cells)} cells have changed since or were not run (run: {COMMAND})"
    idle = [(bug, name) for bug, seen in moves.items() for name in seen if not seen[name]]
    return [
        Finding(
            id=f"decoder.{drafter}/every-policy",
            subject=f"refengine decoder, {drafter}",
            claim="Under every rule that fits and every policy the real loop's exact joint law is the target's, and "
            "every planted state bug moves it.",
            source=LOSSLESS,
            verdict="violated" if bad else "not tested" if missing else "consistent",
            reason=reason if missing and not bad else "",
            method=f"committed result, its digest that of this source: exact law in float64, TV within {EXACT}; "
            f"a planted bug moves it by more than {MOVED}",
            recipe=Recipe(function=f"{__name__}:shown", arguments={"drafter": drafter}),
            numbers={
                "cells": len(laws),
                "largest tv": Quantity(
                    value=max((entry["tv"] for entry in laws.values()), default=0.0), tolerance=EXACT
                ),
                **{key: sum(entry[key] for entry in laws.values()) for key in COUNTED},
                "planted bugs": sum(len(seen) for seen in moves.values()),
                "planted bugs that move the law": sum(sum(seen.values()) for seen in moves.values()),
            },
            notes=[*bad[:5], *(f"{bug} in {name}: no effect on what is compared" for bug, name in idle)],
        )
    ]


def _moves(bugs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, bool]]:
    """By bug and cell: whether the law moves. It stands where the likeliest tokens keep their order, which is all that
    some drafts are made of, and where the bug acts on tokens beyond those that are compared."""
    moves: dict[str, dict[str, bool]] = {}
    for name, found in bugs.items():
        for bug, distances in found.items():
            if bug != "digest":
                moves.setdefault(bug, {})[name] = distances[0] > MOVED
    return moves


if __name__ == "__main__":
    main(sys.argv[1:])
