"""Released layouts are read strictly: whatever is wrong with a checkpoint is refused with one line that names it."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, edit
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.dspark import DSpark
from refengine.decoder.loop import begin
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

GOLDEN = FIXTURES / "golden"
RECORDED = [
    "dspark_qwen3_A",
    "dspark_qwen3_gated_A",
    "dspark_qwen3_rnn_A",
    "dflash_deepspec_qwen3_A",
    "dspark_gemma4_A",
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A writable copy of a recorded checkpoint."""
    folder = tmp_path / "drafter"
    shutil.copytree(GOLDEN / "dspark_qwen3_A" / "drafter", folder)
    return folder


DAMAGE: dict[str, tuple[Edit, str]] = {
    "missing": (lambda t, c: t.pop("fc.weight"), "tensor fc.weight is missing"),
    "extra": (lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "misshapen": (
        lambda t, c: t.update({"norm.weight": torch.ones(47)}),
        r"tensor norm.weight has shape \[47\], the config asks for \[48\]",
    ),
    "wrong dtype": (
        lambda t, c: t.update({"norm.weight": t["norm.weight"].bfloat16()}),
        "tensor norm.weight has dtype bfloat16, expected float32",
    ),
    "integers": (lambda t, c: t.update({"norm.weight": torch.ones(48).long()}), "norm.weight has dtype int64"),
    "fewer layers": (lambda t, c: c.update(num_hidden_layers=2), "layer_types has 3 entries for num_hidden_layers 2"),
    "other rank": (lambda t, c: c.update(markov_rank=8), r"markov_head.markov_w1.weight has shape \[96, 16\]"),
    "head switched off": (
        lambda t, c: c.update(enable_confidence_head=False),
        r"tensor confidence_head.proj.bias is in the file.*and 1 more",
    ),
    "unknown head": (lambda t, c: c.update(markov_head_type="mamba"), "markov_head_type is 'mamba'"),
    "final layer tapped": (lambda t, c: c.update(target_layer_ids=[1, 3, 7]), "target_layer_ids has 7"),
    "mask outside": (lambda t, c: c.update(mask_token_id=96), "mask_token_id 96 is outside the vocabulary"),
    "two thetas": (lambda t, c: c.update(rope_theta=1e6), "rope_theta is 1000000.0, but rope_parameters says 10000.0"),
    "scaled rope": (
        lambda t, c: c.update(rope_parameters={"rope_type": "longrope", "rope_theta": 1e4}),
        "rope_type is 'longrope'",
    ),
    "no rope": (lambda t, c: c.pop("rope_parameters"), "rope_theta is missing"),
    "tied": (lambda t, c: c.update(tie_word_embeddings=True), "tie_word_embeddings is true"),
    "no size": (lambda t, c: c.pop("head_dim"), "head_dim is missing"),
    "size as text": (lambda t, c: c.update(head_dim="16"), "head_dim is '16', expected an integer"),
    "other activation": (lambda t, c: c.update(hidden_act="gelu"), "hidden_act is 'gelu', expected 'silu'"),
    "odd dtype": (lambda t, c: c.update(dtype="int64"), "dtype is 'int64'"),
    "other kind": (lambda t, c: c.update(architectures=["Foo"]), "architectures is Foo"),
    "other vocabulary": (
        lambda t, c: (c.update(vocab_size=95, mask_token_id=3), [t.update({n: t[n][:95].clone()}) for n in list(t) if
            n in ("embed_tokens.weight", "lm_head.weight") or "markov_w" in n]),
        "vocab_size is 95, and the target has 96",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(copy: Path, damage: str) -> None:
    """Kills a reader that ignores, pads, casts or guesses around what a checkpoint gets wrong."""
    change, message = DAMAGE[damage]
    edit(copy, change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(copy, _target())
    assert "\n" not in str(raised.value)
    assert str(copy) in str(raised.value)


@pytest.mark.parametrize("keep", [0, 7, 400, 0.5, -1])
def test_a_truncated_file_is_refused(copy: Path, keep: float) -> None:
    """Kills a reader that fills up what a partial download lacks, or crashes on it."""
    file = copy / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(keep * len(whole)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(BadInput, match="truncated, or no safetensors file"):
        load_drafter(copy, _target())


def test_files_that_are_not_there_are_named(copy: Path, tmp_path: Path) -> None:
    """Kills a stack trace for a wrong path, and two weight files of which one is silently preferred."""
    with pytest.raises(BadInput, match=r"has no config\.json"):
        load_drafter(tmp_path, _target())
    shutil.copy(copy / "model.safetensors", copy / "more.safetensors")
    with pytest.raises(BadInput, match="2 safetensors files and no index"):
        load_drafter(copy, _target())
    (copy / "more.safetensors").unlink()
    (copy / "config.json").write_text("{")
    with pytest.raises(BadInput, match="not JSON"):
        load_drafter(copy, _target())


def test_a_pickle_is_refused_with_the_command_that_helps(copy: Path) -> None:
    """Kills unpickling of a download, and a refusal that leaves the user alone."""
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"refengine checkpoint convert .*pytorch_model\.bin .*model\.safetensors"):
        load_drafter(copy, _target())


def test_shards_are_read_as_one(copy: Path) -> None:
    """Kills a reader that takes the first shard for the whole, or misses one that the index names."""
    tensors = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    names = sorted(tensors)
    for i, part in enumerate((names[:9], names[9:])):
        save_file({name: tensors[name] for name in part}, copy / f"part{i}.safetensors")
    index = {"weight_map": {name: f"part{int(i >= 9)}.safetensors" for i, name in enumerate(names)}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load_drafter(copy, _target()).w.tensors.keys() == tensors.keys()
    (copy / "part1.safetensors").unlink()
    with pytest.raises(BadInput, match=r"shard part1\.safetensors is missing"):
        load_drafter(copy, _target())


def test_rope_and_dtype_are_read_from_either_generation_of_config(copy: Path) -> None:
    """Kills a default of rope_theta = 10000 or of float32 where an older or newer key holds the value."""

    def older(tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        config["rope_theta"] = config.pop("rope_parameters")["rope_theta"] * 2
        config["torch_dtype"] = config.pop("dtype")

    edit(copy, older)
    assert load_drafter(copy, _target()).shape.rope.theta == 20000.0
    edit(copy, lambda t, c: t.update({name: x.half() for name, x in t.items()}))
    with pytest.raises(BadInput, match="has dtype float16, expected float32"):
        load_drafter(copy, _target())


def test_an_ar_drafter_is_held_to_its_own_config_and_the_target(tmp_path: Path) -> None:
    """Kills a draft model with freshly initialised weights, and one of another vocabulary."""
    shutil.copytree(FIXTURES / "tiny" / "ar", tmp_path / "ar")
    with pytest.raises(BadInput, match="a vocabulary of 8 tokens, and the target has 96"):
        load_drafter(tmp_path / "ar", _target())
    target = load_target(FIXTURES / "tiny" / "target")
    edit(tmp_path / "ar", lambda t, c: t.pop("model.layers.0.mlp.up_proj.weight"))
    with pytest.raises(BadInput, match=r"tensor model\.layers\.0\.mlp\.up_proj\.weight is missing"):
        load_drafter(tmp_path / "ar", target)
    edit(
        tmp_path / "ar",
        lambda t, c: t.update({"model.layers.0.mlp.up_proj.weight": torch.ones(24, 12), "odd": torch.ones(1)}),
    )
    with pytest.raises(BadInput, match="tensor odd has no place"):
        load_drafter(tmp_path / "ar", target)


# --- every tensor matters ------------------------------------------------------------------------------------------


def outputs(shape: Any, tensors: dict[str, Tensor]) -> Tensor:
    """All that a DSpark drafter computes after the recorded prompt and four more tokens: rows and confidences."""
    drafter = DSpark(shape, tensors)
    passed = begin(_target(), (14, 30, 81, 61, 82, 17), drafter.taps)
    drafter.start((), passed)
    hidden = drafter.block(22, 6)
    memory, parts = hidden.new_zeros(shape.markov_rank), []
    for slot, token in zip(hidden, (22, 3, 71, 9, 40, 8, 66), strict=False):
        before = drafter.before(token)
        bias, memory = drafter.markov(slot, before, memory)
        parts.append(drafter.logits(slot) + bias)
        if shape.enable_confidence_head:
            parts.append(drafter.confidence(slot, before)[None])
    return torch.cat(parts)


@pytest.mark.parametrize("case", RECORDED)
def test_no_tensor_can_be_zeroed_or_swapped_unnoticed(case: str) -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    drafter = load_drafter(GOLDEN / case / "drafter", _target())
    tensors = dict(drafter.w.tensors)
    tensors["lm_head.weight"] = tensors["lm_head.weight"].roll(1, 1)  # the recorded target ties it to the embedding
    for place, name in enumerate(name for name in tensors if name.endswith("layer_scalar")):
        tensors[name] = tensors[name] * (1.2 + 0.3 * place)  # recorded as 1, which hides a scalar in another's place
    right = outputs(drafter.shape, tensors)
    for name, tensor in tensors.items():
        zeroed = outputs(drafter.shape, tensors | {name: torch.zeros_like(tensor)})
        assert float((zeroed - right).abs().max()) > 1e-4, name
    for a, b in itertools.combinations(tensors, 2):
        if tensors[a].shape == tensors[b].shape:
            swapped = outputs(drafter.shape, tensors | {a: tensors[b], b: tensors[a]})
            assert float((swapped - right).abs().max()) > 1e-4, (a, b)


# --- convert -------------------------------------------------------------------------------------------------------


_TARGETS: list[Any] = []


def _target() -> Any:
    if not _TARGETS:
        _TARGETS.append(load_target(GOLDEN / "target_q3A", torch.float32))
    return _TARGETS[0]
