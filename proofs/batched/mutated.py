"""A batched rule, read anew: its sums stand for sums over any vocabulary, and any text that it runs may be another."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from refengine.exact.card import Card

ENGINE = "refengine.engine"
# What levels.py shows `total` to be; the pick of a token is the coins' affair, which the judge decides.
SUMS = {f"{ENGINE}.sums": "def total(weights): return weights.double().sum(-1)\ndef first_above(share, weights): raise"}
HEADS = {f"{ENGINE}.policy": "def head(weights, p): return weights.head(p)"}  # what heads.py shows it to be


def rule_with(card: Card, texts: Mapping[str, str]) -> Callable[..., Any]:
    """The engine's rule of this name, with other texts in place of some modules of the engine: everything there anew.

    Raises what a text raises when it is read.
    """
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(f"{ENGINE}.")}
    folder = sys.modules[ENGINE].__dict__.copy()
    try:
        for module, text in {**SUMS, **HEADS, **texts}.items():
            made = sys.modules[module] = ModuleType(module)
            exec(compile(text, module, "exec"), made.__dict__)
        return getattr(import_module(f"{ENGINE}.rules.{card.file}"), card.name)  # type: ignore[no-any-return]
    finally:
        for name in [name for name in sys.modules if name.startswith(f"{ENGINE}.")]:
            del sys.modules[name]
        sys.modules.update(before)
        sys.modules[ENGINE].__dict__.update(folder)
