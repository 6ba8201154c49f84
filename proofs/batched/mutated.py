"""A batched rule whose text, or the text of what it calls, is another: the equality must see that."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from refengine.exact.card import Card

ENGINE = "refengine.engine"


def rule_with(card: Card, module: str, text: str) -> Callable[..., Any]:
    """The engine's rule of this name, with `text` in place of one module of the engine: everything there anew.

    Raises what the text raises when it is read.
    """
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(f"{ENGINE}.")}
    folder = sys.modules[ENGINE].__dict__.copy()
    try:
        made = ModuleType(module)
        sys.modules[module] = made
        exec(compile(text, module, "exec"), made.__dict__)
        return getattr(import_module(f"{ENGINE}.rules.{card.file}"), card.name)  # type: ignore[no-any-return]
    finally:
        for name in [name for name in sys.modules if name.startswith(f"{ENGINE}.")]:
            del sys.modules[name]
        sys.modules.update(before)
        sys.modules[ENGINE].__dict__.update(folder)
