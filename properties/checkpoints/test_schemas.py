"""`fixtures/schemas` says of every field and tensor of a released layout whether it is known, second-hand or UNKNOWN.

A checkpoint's schema is the file named as the module of `layouts/` that reads it. A schema has `config`, `not read` and
`tensors`; each of its `layouts` has these and its own, those of the layouts that it is `as in`, and `within` an object
those of another. In the name of a tensor N, E and {...} stand for numbers.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from refengine.decoder import load_target
from refengine.decoder.checkpoints.layouts import deepseek_mtp
from refengine.decoder.checkpoints.load import layout_of
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.unread_fields import QUANTISED, SWITCHES
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES, GOLDEN

SCHEMAS = {file.stem: json.loads(file.read_text()) for file in sorted((FIXTURES / "schemas").glob("*.json"))}
TINY = {row.folder: row.target for row in ROWS.values() if row.folder}
RECORDED = [folder for kind in ("*/drafter", "hf_dsv3*/target", "sp_mtp*/target") for folder in GOLDEN.glob(kind)]
WHOLE = {"tiny/ar", "golden/hf_assisted_A/drafter", "golden/medusa2_A/drafter"}  # models that transformers reads
FOLDERS = {*(FIXTURES / folder for folder in TINY), *RECORDED, FIXTURES / "qwen_mtp" / "target"}
NAMES = sorted({folder.relative_to(FIXTURES).as_posix() for folder in FOLDERS} - WHOLE)
# Fields that transformers writes into the config of any model.
WRITTEN = """
_name_or_path attention_dropout bos_token_id chunk_size_feed_forward eos_token_id id2label initializer_range label2id
is_encoder_decoder max_position_embeddings max_window_layers model_type moe_intermediate_size num_experts
output_attentions output_hidden_states pad_token_id problem_type return_dict sliding_window target_model_type
target_text_model_type top_k_experts transformers_version use_bidirectional_attention use_cache
vocab_size_per_layer_input
"""
UNREAD = {"dspark": WRITTEN.split(), "medusa": ["transformers_version"]}
ALIASES = {"encoder.fc.weight": "fc.weight", "encoder.output_norm_enc.weight": "hidden_norm.weight"}  # of transformers
# Fields that `reading/` asks of every config.
GENERAL = {"dtype", "torch_dtype", "rope_parameters", "rope_scaling", "layer_types", "use_sliding_window"}


def schema_of(checkpoint: Checkpoint) -> str:
    return layout_of(checkpoint).load.__module__.rpartition(".")[2]


def part(name: str) -> dict[str, Any]:
    """A layout ("dflash/zlab"), or a schema without layouts ("ar"), with what it has of others."""
    file, _, layout = name.partition("/")
    schema = SCHEMAS[file]
    found = schema["layouts"][layout] if layout else {}
    said = {kind: schema.get(kind, {}) | found.get(kind, {}) for kind in ("config", "tensors")}
    said["not read"] = [*schema.get("not read", ()), *found.get("not read", ()), *UNREAD.get(file, ())]
    for other in map(part, found.get("as in", ())):
        said = {kind: said[kind] + other[kind] if kind == "not read" else said[kind] | other[kind] for kind in said}
    return schema | found | said


def parts(file: str) -> list[dict[str, Any]]:
    """Whatever a checkpoint of this schema may look like."""
    return [part(f"{file}/{layout}") for layout in SCHEMAS[file].get("layouts", ())] or [part(file)]


def own_tensors(checkpoint: Checkpoint) -> Iterator[str]:
    """Those of the drafter, where its target stands in the same file."""
    if deepseek_mtp.has_modules(checkpoint):
        yield from (re.sub(r"^model\.layers\.\d+\.", "", name) for name in deepseek_mtp.read(checkpoint)[1])
    else:
        own = [name for name in checkpoint.shapes if name.startswith("mtp.")]
        yield from (ALIASES.get(name, name) for name in own or checkpoint.shapes)


def unknown(checkpoint: Checkpoint, said: dict[str, Any]) -> set[str]:
    """Fields and tensors of a checkpoint that are not said to be there."""
    number = re.compile(r"\\\{\w+\\\}|(?<=\\\.)[NE](?=\\\.)")
    known = [re.compile(number.sub(r"(\\w+\\.)?\\d+", re.escape(name))) for name in said["tensors"]]
    tensors = {name for name in own_tensors(checkpoint) if not any(one.fullmatch(name) for one in known)}
    fields = checkpoint.config.fields
    left = fields.keys() - said["config"].keys() - {*said["not read"]}
    if "text_config" in said:
        left -= {"text_config"}
        left |= fields["text_config"].keys() - said["text_config"].keys() - {*said["not read in text_config"]}
    for name, layout in said.get("within", {}).items():
        other = part(layout)
        left |= fields.get(name, {}).keys() - other["config"].keys() - {*other["not read"]}
    return tensors | left


@pytest.mark.parametrize("folder", NAMES)
def test_the_schema_knows_every_field_and_tensor(folder: str) -> None:
    """Kills a checkpoint field that nobody has said whether it is known, second-hand or UNKNOWN."""
    checkpoint = Checkpoint(FIXTURES / folder)
    assert min((unknown(checkpoint, said) for said in parts(schema_of(checkpoint))), key=len) == set()


def test_a_field_and_a_tensor_that_nobody_named_are_seen() -> None:
    """Kills a comparison that knows whatever it is shown."""
    checkpoint = Checkpoint(FIXTURES / "dart" / "drafter")
    (said,) = parts("dart")
    vars(checkpoint)["config"] = Config(checkpoint.config.path, {**checkpoint.config.fields, "depth_scale": 2})
    vars(checkpoint)["shapes"] = {**checkpoint.shapes, "midlayer.gate.weight": (1,)}
    assert unknown(checkpoint, said) == {"depth_scale", "midlayer.gate.weight"}


class Noting(dict[str, Any]):
    """Fields of a config, and which of them were asked for."""

    def __init__(self, fields: Any) -> None:
        super().__init__(fields)
        self.asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


@pytest.mark.parametrize("folder", sorted(TINY))
def test_the_schema_knows_what_its_reader_asks_for(folder: str) -> None:
    """Kills a reader that has outgrown the statement of what is known about the layout."""
    checkpoint = Checkpoint(FIXTURES / folder)
    name, layout, fields = schema_of(checkpoint), layout_of(checkpoint), Noting(checkpoint.config.fields)
    vars(checkpoint)["config"] = Config(checkpoint.config.path, fields)
    layout.load(checkpoint, load_target(FIXTURES / TINY[folder], torch.float32))
    known = {field for said in parts(name) for field in (*said["config"], *said["not read"])}
    assert fields.asked - {*SWITCHES, *QUANTISED} - GENERAL - known == set()
    assert fields.asked


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_status_is_one_of_three(name: str) -> None:
    """Kills a field whose status is misspelt or missing."""
    for said in parts(name):
        for kind in ("config", "text_config", "tensors", "ngram"):
            for field in said.get(kind, {}).values():
                assert field["status"] in SCHEMAS[name]["statuses"], field
