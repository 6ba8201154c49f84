"""Reading config.json: every value that is used is asked for by name and type, and a wrong one is named."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from refengine.errors import BadInput

Sizes = TypeVar("Sizes")


@dataclass(frozen=True)
class Config:
    """The fields of one config.json (or of one object inside it); `path` is for messages."""

    path: str
    fields: Mapping[str, Any]

    def integer(self, name: str, least: int = 1, default: int | None = None) -> int:
        """default: where the field is missing, null or 0."""
        if default is not None and not self.fields.get(name):
            return default
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(f"{name} is {value!r}, expected an integer of at least {least}")
        return int(value)

    def number(self, name: str) -> float:
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            self.refuse(f"{name} is {value!r}, expected a positive number")
        return float(value)

    def flag(self, name: str, default: bool | None = None) -> bool:
        value = self.fields.get(name) if default is not None and name not in self.fields else self._get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, bool):
            self.refuse(f"{name} is {value!r}, expected true or false")
        return bool(value)

    def one_of(self, name: str, *allowed: str) -> str:
        value = self._get(name)
        if value not in allowed:
            self.refuse(f"{name} is {value!r}, expected {' or '.join(map(repr, allowed))}")
        return str(value)

    def integers(self, name: str) -> tuple[int, ...]:
        value = self._get(name)
        if (
            not isinstance(value, list)
            or not value
            or any(isinstance(x, bool) or not isinstance(x, int) for x in value)
        ):
            self.refuse(f"{name} is {value!r}, expected a list of integers")
        return tuple(value)

    def object(self, name: str) -> "Config":
        """The object of this name; empty where there is none."""
        value = {} if self.fields.get(name) is None else self.fields[name]
        if not isinstance(value, Mapping):
            self.refuse(f"{name} is {value!r}, expected an object")
        return Config(f"{self.path} ({name})", value)

    def sizes(self, shape: type[Sizes], **given: Any) -> Sizes:
        """A dataclass of sizes: what is given, and every other field without a default as the config has it.

        int: an integer of at least 1; float: a positive number; bool: false where the config does not say.
        """
        read: dict[Any, Any] = {int: self.integer, float: self.number, bool: partial(self.flag, default=False)}
        asked = [x for x in fields(shape) if x.default is MISSING and x.name not in given]  # type: ignore[arg-type]
        return shape(**given, **{x.name: read[x.type](x.name) for x in asked})

    def architecture(self) -> str:
        """The first of `architectures`."""
        named = self.fields.get("architectures") or ["(none)"]
        if not isinstance(named, list) or not isinstance(named[0], str):
            self.refuse(f"architectures is {named!r}, expected a list of names")
        return str(named[0])

    def rope_theta(self) -> float:
        """The base of unscaled rotary embeddings, from `rope_theta` (transformers 4) or `rope_parameters` (5)."""
        given, scaling = self.object("rope_parameters").fields, self.object("rope_scaling").fields
        for kind in (given.get("rope_type"), scaling.get("rope_type"), scaling.get("type")):
            if kind not in (None, "default"):
                self.refuse(f"rope_type is {kind!r}, and only unscaled rotary embeddings are implemented here")
        theta = self.fields.get("rope_theta")
        for name, where in (("rope_parameters", given), ("rope_scaling", scaling)):
            said = where.get("rope_theta")
            if said is not None and theta is not None and said != theta:
                self.refuse(f"rope_theta is {theta!r}, but {name} says {said!r}")
            theta = said if theta is None else theta
        return Config(self.path, {"rope_theta": theta}).number("rope_theta")

    def refuse_uneven(self, heads: int, groups: int) -> None:
        """Raise BadInput for heads that do not share keys and values evenly."""
        if heads % groups:
            self.refuse(f"{heads} heads do not divide over {groups} key/value heads")

    def refuse(self, problem: str) -> NoReturn:
        raise BadInput(f"{self.path}: {problem}")

    def _get(self, name: str) -> Any:
        if self.fields.get(name) is None:
            self.refuse(f"{name} is missing")
        return self.fields[name]


def speculative_tokens(config: Config) -> int | None:
    """Drafted tokens a round, as the first of speculators' proposal methods says it; None where there is none."""
    said = config.object("speculators_config")
    methods = said.fields.get("proposal_methods") or [{}]
    if not isinstance(methods, list) or not isinstance(methods[0], dict):
        said.refuse(f"proposal_methods is {methods!r}, expected a list of objects")
    return Config(config.path, methods[0]).integer("speculative_tokens") if methods[0] else None


def read_config(folder: Path, name: str = "config.json") -> Config:
    """`config.json` of a checkpoint folder, or what stands for it."""
    path = folder / name
    if not folder.is_dir():
        is_what = (
            "is a file: give the folder that it is in"
            if folder.exists()
            else "is no folder here (nothing is downloaded)"
        )
        raise BadInput(f"{folder} {is_what}")
    if not path.is_file():
        raise BadInput(f"{folder} has no {name}, so it is no checkpoint folder")
    try:
        fields = json.loads(path.read_text(encoding="utf-8"), parse_constant=_constant)
    except ValueError as error:
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadInput(f"{path}: not a JSON object")
    return Config(str(path), fields)


def _constant(word: str) -> float:
    """Infinity stands in configs of transformers, as a limit; a NaN would be in every row."""
    if word == "NaN":
        raise ValueError("it holds a NaN")
    return float(word)
