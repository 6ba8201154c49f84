"""`fixtures/schemas` says of every field and tensor of a released layout whether it is known, second-hand or UNKNOWN.

A checkpoint's schema is the file named as the module of `layouts/` that reads it. A schema has `config`, `not read` and
`tensors`; each of its `layouts` has these and its own, those of the layouts that it is `as in`, and `within` an object
those of another. In the name of a tensor N, E and {...} stand for numbers. What is not said to be unread takes effect:
with another value there the file is refused, or other drafts are made.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
import torch

from properties.helpers.coins import COINS
from properties.helpers.schemas import KINDS, SCHEMAS, special
from refengine.decoder import load_target
from refengine.decoder.checkpoints.layouts import deepseek_mtp
from refengine.decoder.checkpoints.load import layout_of, options_of
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.unread_fields import QUANTISED, SWITCHES
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.loop import Session
from refengine.engine.policy import pipeline, temperature
from refengine.errors import BadInput
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.memo import content
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.row import Row
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES, GOLDEN

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
    unsaid = min((unknown(checkpoint, said) for said in parts(schema_of(checkpoint))), key=len)
    assert unsaid == set(), "write in fixtures/schemas whether each is known, second-hand or UNKNOWN"


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


# --- what is read takes effect ---------------------------------------------------------------------------------------

Place: TypeAlias = tuple[str | int, ...]  # the names, or places of a list, on the way to a field
# Of the rows of a folder one that draws, if there is one: what it reports is numbers, and each of them shows.
BY_RULE = sorted(ROWS.values(), key=lambda row: row.rules[0] != "point_mass")
SAID = {row.folder: row for row in BY_RULE if (FIXTURES / row.folder / "config.json").is_file()}
del SAID["tiny/ar"]  # transformers reads it
ELSEWHERE = {
    "num_anchors",
    "embed_requires_grad",
    "verifier_accept_k",
    "accept_tolerance",
}  # training, a lossy verifier


def places(fields: dict[str, Any], above: Place = ()) -> Iterator[tuple[Place, list[Any]]]:
    """Every switch, number and list of numbers of a config, and what else could stand there."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from places(value, (*above, name))
        elif isinstance(value, list) and value and isinstance(value[0], dict):  # the first one is read
            yield from places(value[0], (*above, name, 0))
        elif isinstance(value, bool):
            yield (*above, name), [not value]
        elif isinstance(value, int):
            yield (*above, name), [value + 1, value - 1]
        elif isinstance(value, float):
            yield (*above, name), [1.5 * value]
        elif isinstance(value, list) and value and all(type(x) is int for x in value):
            yield (*above, name), [x for x in (value[::-1], value[:1] * len(value)) if x != value]


def changed(folder: str, place: Place = (), value: Any = None) -> Checkpoint:
    """The same files under a config that says this."""
    found = Checkpoint(FIXTURES / folder)
    fields = copy.deepcopy(dict(found.config.fields))
    inner: Any = fields
    for name in place[:-1]:
        inner = inner[name]
    inner |= dict.fromkeys(place[-1:], value)
    vars(found)["config"] = Config(found.config.path, fields)
    return found


def drafted(row: Row, checkpoint: Checkpoint) -> Any:
    """What is proposed in two rounds, and all that is held after them; None where the file is refused."""
    target = target_that_remembers(row.target)
    try:
        layout = layout_of(checkpoint)
        # How many are drafted a config may say.
        options = {name: value for name, value in row.options.items() if name not in ("plan", "length")}
        if "plan" in options_of(layout) and row.rules[0] == "point_mass":
            options["plan"] = Chain(3)
        session = Session(target, layout.load(checkpoint, target, **options), along((), 3), SAMPLED, 10**6)
        session.begin((5, 4, 0, 4, 0, 6, 3, 2, 4), COINS)
        for _ in range(2):
            session.play(COINS)
    except BadInput:
        return None
    blocks = [(x.block.tokens, x.block.parents, x.block.q) for x in session.rounds]
    return content((*blocks, session.drafter.state()))


SAMPLED = pipeline(temperature(1.0))


@pytest.mark.parametrize("folder", SAID)
@torch.inference_mode()
def test_what_a_config_says_takes_effect(folder: str) -> None:
    """Kills a length, a switch, a width or a factor that is read and then ignored, and a schema that calls it read."""
    row, whole = SAID[folder], changed(folder)
    unread = {name for said in parts(schema_of(whole)) for kind in said if "not read" in kind for name in said[kind]}
    before = drafted(row, whole)
    assert before is not None
    idle = {
        ".".join(map(str, place))
        for place, values in places(dict(whole.config.fields))
        if place[-1] not in unread | ELSEWHERE | {"max_position_embeddings"}  # which is asked for scaled angles alone
        and any(drafted(row, changed(folder, place, value)) == before for value in values)
    }
    assert idle == {*special(folder, "no effect")}, (
        f'"no effect" of {folder} in fixtures/schemas/{schema_of(whole)}.json'
    )


def test_what_is_special_about_a_fixture_stands_in_its_schema() -> None:
    """Kills an exception that nobody reads, or that outlives its fixture."""
    for name, schema in SCHEMAS.items():
        for folder, said in schema.get("fixtures", {}).items():
            assert said.keys() <= KINDS, folder
            assert schema_of(Checkpoint(FIXTURES / folder)) == name, folder


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_status_is_one_of_three(name: str) -> None:
    """Kills a field whose status is misspelt or missing."""
    for said in parts(name):
        for kind in ("config", "text_config", "tensors", "ngram"):
            for field in said.get(kind, {}).values():
                assert field["status"] in SCHEMAS[name]["statuses"], field
