"""The released layouts of Medusa: what a file may leave out, what is refused, and that every tensor is used."""

import itertools
import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, damaged
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.medusa import heads
from refengine.decoder.drafters.medusa import Medusa, Shape
from refengine.decoder.drafters.medusa_trees import TREES
from refengine.decoder.protocols import Target
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

GOLDEN = FIXTURES / "golden"
TARGETS = {"medusa1_A": "target_medusa1_A", "medusa2_A": "medusa2_A/drafter"}


@cache
def target_of(case: str) -> Target:
    return load_target(GOLDEN / TARGETS[case], torch.float32)


DAMAGE: dict[str, tuple[str, Edit, str]] = {
    "missing": ("medusa1_A", lambda t, c: t.pop("1.0.linear.bias"), "tensor 1.0.linear.bias is missing"),
    "extra": ("medusa1_A", lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "misshapen": (
        "medusa1_A",
        lambda t, c: t.update({"2.0.linear.weight": torch.ones(64, 63)}),
        r"tensor 2.0.linear.weight has shape \[64, 63\]",
    ),
    "wrong dtype": (
        "medusa1_A",
        lambda t, c: t.update({"2.1.weight": t["2.1.weight"].half()}),
        "tensor 2.1.weight has dtype float16",
    ),
    "other target": (
        "medusa1_A",
        lambda t, c: t.update({f"{i}.1.weight": torch.ones(95, 64) for i in range(5)}),
        "0.1.weight maps a width of 64 to 95 tokens, and the target has width 64 and 96 tokens",
    ),
    "fewer heads than said": ("medusa1_A", lambda t, c: c.update(medusa_num_heads=6), "tensor 5.0.linear.weight is mi"),
    "more layers than said": ("medusa1_A", lambda t, c: c.update(medusa_num_layers=2), "tensor 0.2.weight is missing"),
    "no layer count": ("medusa1_A", lambda t, c: c.pop("medusa_num_layers"), "medusa_num_layers is missing"),
    "count as text": ("medusa1_A", lambda t, c: c.update(medusa_num_heads="2"), "medusa_num_heads is '2', expected an"),
    "whole: more heads": ("medusa2_A", lambda t, c: c.update(medusa_num_heads=3), "is 3, and the file has 4 heads"),
    "whole: base missing": ("medusa2_A", lambda t, c: t.pop("lm_head.weight"), "tensor lm_head.weight is missing"),
    "whole: base extra": (
        "medusa2_A",
        lambda t, c: t.update({"model.layers.6.mlp.up_proj.weight": torch.ones(96, 64)}),
        "tensor model.layers.6.mlp.up_proj.weight is in the file",
    ),
    "whole: no model": ("medusa2_A", lambda t, c: c.update(model_type="none-such"), "no model of transformers"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads or guesses around what a checkpoint gets wrong."""
    case, change, message = DAMAGE[damage]
    folder = damaged(GOLDEN / case / "drafter", tmp_path / "drafter", change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, target_of(case))
    assert "\n" not in str(raised.value)


def test_the_pickle_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    """Kills unpickling of `medusa_lm_head.pt`, the only file that Medusa-1 releases."""
    shutil.copy(GOLDEN / "medusa1_A" / "drafter" / "config.json", tmp_path)
    (tmp_path / "medusa_lm_head.pt").write_bytes(b"\x80\x02.")
    target = load_target(FIXTURES / "tiny" / "target")
    with pytest.raises(BadInput, match=r"refengine checkpoint convert .*medusa_lm_head\.pt"):
        load_drafter(tmp_path, target)


def written(folder: Path, tensors: dict[str, Tensor], **config: Any) -> Path:
    """A drafter folder. Tensors are copied: safetensors stores no shared memory."""
    folder.mkdir()
    save_file({name: x.clone() for name, x in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def residual_layers(count: int, heads: int = 2) -> dict[str, Tensor]:
    """The released heads: `[ResBlock] * count` is one module under `count` names."""
    made = torch.Generator().manual_seed(count)
    tensors: dict[str, Tensor] = {}
    for i in range(heads):
        one = {"weight": torch.randn(32, 32, generator=made) / 6, "bias": torch.randn(32, generator=made)}
        tensors |= {f"{i}.{j}.linear.{part}": x for j in range(count) for part, x in one.items()}
        tensors[f"{i}.{count}.weight"] = torch.randn(8, 32, generator=made)
    return tensors


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_repeated_layers_are_written_once_or_under_every_name(tmp_path: Path, layers: int) -> None:
    """Kills a reader that asks for names which transformers leaves out when it saves a repeated module, one that puts
    another head's layer there, and one that thinks every head has a residual layer."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    said = {"medusa_num_heads": 2, "medusa_num_layers": layers}
    every = residual_layers(layers)
    once = {name: x for name, x in every.items() if not re.match(r"\d+\.[1-9]\.linear", name)}
    a, b = (load_drafter(written(tmp_path / n, t, **said), target) for n, t in (("all", every), ("once", once)))
    assert isinstance(a, Medusa)
    assert isinstance(b, Medusa)
    hidden, logits = torch.ones(32), []
    for i in range(2):
        x = hidden
        for _ in range(layers):
            x = x + torch.nn.functional.silu(every[f"{i}.0.linear.weight"] @ x + every[f"{i}.0.linear.bias"])
        logits.append(every[f"{i}.{layers}.weight"] @ x)
    torch.testing.assert_close(a.heads(hidden), torch.stack(logits))
    torch.testing.assert_close(b.heads(hidden), torch.stack(logits))


def test_a_repeated_layer_that_is_there_in_part_is_missing(tmp_path: Path) -> None:
    """Kills a damaged file that is taken for one in which repeated layers were left out."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    tensors = residual_layers(3)
    del tensors["1.2.linear.bias"]
    with pytest.raises(BadInput, match=r"tensor 1\.2\.linear\.bias is missing"):
        load_drafter(written(tmp_path / "d", tensors, medusa_num_heads=2, medusa_num_layers=3), target)


def test_the_legacy_trainers_heads_end_in_the_targets(tmp_path: Path) -> None:
    """Kills a refusal of what train_legacy.py writes, and a tree picked by a name that its decoder never reads."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    assert isinstance(target, TransformersTarget)
    tensors = {name: x for name, x in residual_layers(1).items() if "linear" in name}
    said = {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "vicuna-7b"}
    drafter = load_drafter(written(tmp_path / "legacy", tensors, version="2", **said), target)
    assert isinstance(drafter, Medusa)
    hidden, head = torch.ones(32), target.model.get_output_embeddings()
    layers = [tensors[f"{i}.0.linear.weight"] @ hidden + tensors[f"{i}.0.linear.bias"] for i in range(2)]
    wanted = torch.stack([head(hidden + torch.nn.functional.silu(x)) for x in layers])
    torch.testing.assert_close(drafter.heads(hidden), wanted)
    assert drafter.tree == Medusa(drafter.shape, dict(drafter.w.tensors), TREES["mc_sim_7b_63"]).tree
    with pytest.raises(BadInput, match=r"tensor 0\.1\.weight is missing"):
        load_drafter(written(tmp_path / "plain", tensors, **said), target)


def test_a_whole_models_tree_is_picked_by_the_name_it_is_loaded_by(tmp_path: Path) -> None:
    """Kills a tree picked by the base model's name alone: the released code asks the folder of a Medusa-2."""
    folder = shutil.copytree(GOLDEN / "medusa2_A" / "drafter", tmp_path / "medusa-v1.0-vicuna-7b-v1.5")
    drafter = load_drafter(folder, target_of("medusa2_A"))
    assert isinstance(drafter, Medusa)
    assert drafter.tree == TREES["vicuna_7b_stage2"]


@pytest.mark.parametrize("case", sorted(TARGETS))
def test_no_tensor_can_be_zeroed_or_swapped_unnoticed(case: str) -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    drafter = load_drafter(GOLDEN / case / "drafter", target_of(case))
    assert isinstance(drafter, Medusa)
    hidden = load_file(GOLDEN / case / "golden.safetensors")["prefill.hidden"]
    tensors = dict(drafter.w.tensors)

    def moved(change: dict[str, Tensor]) -> float:
        other = Medusa(drafter.shape, tensors | change, ())
        return float((other.heads(hidden) - drafter.heads(hidden)).abs().max())

    for name in tensors:
        assert moved({name: torch.zeros_like(tensors[name])}) > 1e-4, name
    for a, b in itertools.combinations(tensors, 2):
        if tensors[a].shape == tensors[b].shape:
            assert moved({a: tensors[b], b: tensors[a]}) > 1e-4, (a, b)


def test_the_schema_has_the_tensors_of_the_layout_and_no_others() -> None:
    """Kills a reader that has outgrown the statement of what is known about the layout."""
    schema = json.loads((FIXTURES / "schemas" / "medusa.json").read_text())
    named = {re.sub(r"^\d+\.\d+\.linear", "{head}.{layer}.linear", re.sub(r"^\d+\.2\.", "{head}.{layers}.", name))
             for name in heads(Shape(2, 2, 8, 4, 1))}  # fmt: skip
    assert named == schema["tensors"].keys()
