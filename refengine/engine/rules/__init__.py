"""Verification rules, one file each, the batched twins of `refengine.exact.rules`.

Every rule is `rule(p, block, coins) -> Round` with p float [B, n + 1, V], root first. It takes the decisions of the
exact text in the same order and at the same sites, for all lanes at once: lanes that have nothing to decide are idle.
`RULES` is what stands in this folder: every function that takes p, a block and coins, by its name, which is the exact
text's. What a rule is for, its card says, beside the exact text; defaults are read from there.
"""

from collections.abc import Callable
from importlib import import_module
from inspect import getmembers, isfunction, signature
from pkgutil import iter_modules

from refengine.engine.block import Round

RULES: dict[str, Callable[..., Round]] = {
    name: rule
    for file in iter_modules(__path__)
    for name, rule in getmembers(import_module(f"{__name__}.{file.name}"), isfunction)
    if [*signature(rule).parameters][:3] == ["p", "block", "coins"]
}
