"""Canonical JSON: one value, one text. Whatever a report holds is first made plain, then written in a single way."""

import json
import math
from fractions import Fraction
from typing import Any

import msgspec

from refengine.errors import BadInput
from refengine.files import each_key_once, json_of
from refengine.report.finding import Quantity


def plain(value: Any, where: str = "value") -> Any:
    """`value` as plain JSON: structs become objects, tuples lists, fractions text ("1/3").

    Raises ValueError, naming the place, for what has no single text: NaN and infinities, keys that are not strings,
    sets, arrays, tensors and other objects.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}: a report holds finite numbers only")
        return value + 0.0  # -0.0 becomes 0.0
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Quantity):  # a float even where an integer was given, or a reload would change the text
        return {name: plain(float(getattr(value, name)), f"{where}.{name}") for name in ("tolerance", "value")}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name), f"{where}.{name}") for name in value.__struct_fields__}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{where} has the key {key!r}: keys in a report are strings")
        return {key: plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise ValueError(f"{where} is a {type(value).__name__}: a report holds plain JSON and fractions only")


def canonical(value: Any, *, indent: int | None = 1) -> str:
    """The canonical text: sorted keys, shortest round-trip floats, UTF-8 as it is, one newline at the end."""
    separators = (",", ": ") if indent is not None else (",", ":")
    text = json.dumps(
        plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )
    return text + "\n"


def parse(text: str, name: str) -> Any:
    """The value of a JSON text; BadInput naming `name` for broken JSON, NaN, or a key that is given twice."""

    def refuse(constant: str) -> float:
        raise BadInput(f"{name} contains {constant}: a report holds finite numbers only")

    return json_of(text, name, object_pairs_hook=each_key_once(name), parse_constant=refuse)
