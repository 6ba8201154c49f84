"""What a config leaves out: every field that a reader asks for has one default, whichever way it is not said."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

import pytest
import torch

from properties.helpers.schemas import SPECIAL, special
from refengine.decoder.checkpoints.load import layout_of, load_target
from refengine.decoder.checkpoints.reading.checkpoint import PARAMS, Checkpoint
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.unread_fields import QUANTISED, SWITCHES
from refengine.errors import BadInput
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

TARGETS = {row.folder: row.target for row in ROWS.values() if row.folder} | {"qwen_mtp/target": "qwen_mtp/target"}


class Noting(dict[str, Any]):
    """Fields of a config, and the names that were asked for of any."""

    asked: ClassVar[set[str]] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)


@cache
def target_of(folder: str) -> Any:
    return load_target(FIXTURES / TARGETS[folder], torch.float32)


def loaded(folder: str, fields: dict[str, Any]) -> list[Any] | str:
    """What a drafter is, or the line that refuses it."""
    checkpoint = Checkpoint(FIXTURES / folder)
    vars(checkpoint)["config"] = Config("config", Noting(fields))
    try:
        drafter = layout_of(checkpoint).load(checkpoint, target_of(folder))
    except BadInput as error:
        return str(error)
    parts = (drafter, getattr(drafter, "network", None), getattr(drafter, "plan", None))
    of = ("shape", "taps", "tree", "gamma", "length", "modules", "token", "masks")
    kinds: list[Any] = [type(part) for part in parts]
    return kinds + [
        [one.shape for one in value] if name == "modules" else value
        for part in parts
        for name in of
        if (value := getattr(part, name, None)) is not None
    ]


def fields_of(folder: str) -> dict[str, Any]:
    files = [FIXTURES / folder / name for name in ("config.json", PARAMS)]
    said: dict[str, Any] = json.loads(next(file for file in files if file.is_file()).read_text())
    return said


def places(fields: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a field stands, at whatever depth."""
    for name, value in fields.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from places(value, (*path, name))


def changed(fields: dict[str, Any], path: tuple[str, ...], **value: Any) -> dict[str, Any]:
    """The fields with another value at a place, or without it."""
    name, *below = path
    if below:
        return {**fields, name: changed(fields[name], tuple(below), **value)}
    return {key: x for key, x in fields.items() if key != name} | ({name: value["to"]} if value else {})


@pytest.mark.parametrize("folder", sorted(TARGETS))
def test_what_is_left_out_is_what_the_file_would_have_said(folder: str) -> None:
    """Kills a default that no fixture reads, since all say its value; and null read as something else than nothing."""
    fields = fields_of(folder)
    Noting.asked = set()
    whole = loaded(folder, fields)
    assert isinstance(whole, list)
    asked = Noting.asked - {*SWITCHES, *QUANTISED}
    for path in places(fields):
        if path[-1] not in asked:
            continue
        without, null = loaded(folder, changed(fields, path)), loaded(folder, changed(fields, path, to=None))
        if path[-1] not in special(folder, "another where left out"):
            assert isinstance(without, str) or without == whole, path
        assert isinstance(null, str) or null == without, path


@pytest.mark.parametrize("folder", [folder for folder, said in SPECIAL.items() if "unsaid" in said])
def test_what_no_fixture_says_may_be_said(folder: str) -> None:
    """Kills a field that is read under another name or not at all, and a default that is not the release's."""
    fields = fields_of(folder)
    whole = loaded(folder, fields)
    inner = next((name for name in ("transformer_layer_config", "text_config") if name in fields), None)
    for name, said in special(folder, "unsaid").items():
        path = (inner, name) if inner else (name,)
        assert loaded(folder, changed(fields, path, to=said["taken"])) == whole, name
        another = said["another"]
        assert loaded(folder, changed(fields, path, to=another)) != whole or another is None, name


# --- one field, two names -------------------------------------------------------------------------------------------

STRETCHED = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
SCALINGS: list[dict[str, Any]] = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 32},
    STRETCHED,
    {**STRETCHED, "mscale": 1.0, "mscale_all_dim": 0.7},
]  # fmt: skip
ROPE = ("rope_parameters", "rope_scaling", "rope_theta")
OTHER_WORDS = ("none", "in names of its own", "transformers'")
TURNED = [folder for folder in sorted(TARGETS) if special(folder, "angles") not in OTHER_WORDS]


@pytest.mark.parametrize("folder", [folder for folder in TURNED if special(folder, "angles") != "by type of layer"])
def test_angles_are_the_same_in_the_words_of_either_generation(folder: str) -> None:
    """Kills a scaling, a base or a factor on scores that is looked for in the words of one generation alone, or read
    otherwise in them: released files are of transformers 4, the fixtures of 5."""
    fields = fields_of(folder)
    inner = "transformer_layer_config" if "transformer_layer_config" in fields else None
    sizes: dict[str, Any] = {key: x for key, x in (fields[inner] if inner else fields).items() if key not in ROPE}
    sizes |= {"max_position_embeddings": 128}
    own = special(folder, "angles") == "scaled in its own way"
    for scaling in SCALINGS[:1] if own else SCALINGS:
        kind = {"type": scaling["rope_type"]} | {key: x for key, x in scaling.items() if key != "rope_type"}
        part = {"partial_rotary_factor": 0.5} if folder.startswith("qwen_mtp") else {}
        said = [{"rope_parameters": scaling | part | {"rope_theta": 77.0}}]
        said += [{"rope_theta": 77.0, "rope_scaling": words, **part} for words in (scaling, kind)]
        found = [loaded(folder, fields | {inner: sizes | one} if inner else sizes | one) for one in said]
        assert isinstance(found[0], list), found
        assert found[0] == found[1] == found[2], scaling
    plain = {"rope_theta": 77.0, "rope_type": "default"}
    twice = [{"rope_theta": 78.0, "rope_parameters": plain}]
    if not own:
        twice.append({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": plain})
    for one in twice:
        assert isinstance(loaded(folder, fields | {inner: sizes | one} if inner else sizes | one), str)


@pytest.mark.parametrize("folder", TURNED)
@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
def test_the_dtype_is_held_to_the_tensors_under_either_name(folder: str, name: str) -> None:
    """Kills a declared dtype that is looked for under one generation's name: half precision that was cast is no
    checkpoint of single precision."""
    fields = {key: x for key, x in fields_of(folder).items() if key not in ("dtype", "torch_dtype")}
    for key in ("transformer_layer_config", "text_config"):
        if key in fields:
            fields[key] = {k: x for k, x in fields[key].items() if k not in ("dtype", "torch_dtype")}
    assert isinstance(loaded(folder, {**fields, name: "float32"}), list)
    said = loaded(folder, {**fields, name: "float16"})
    assert isinstance(said, str)
    assert "has dtype float32, expected float16" in said
