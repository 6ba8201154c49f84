"""Files as other tools write them: the same numbers are read, and what is damaged, packed or no number is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from properties.helpers.checkpoints.damaged import Edit, damaged
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.reading.checkpoint import PARAMS
from refengine.errors import BadInput
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

TARGET = load_target(FIXTURES / "tiny" / "target", torch.float32)
GATE = "midlayer.mlp.gate_proj.weight"


def copied(name: str, tmp_path: Path, change: Edit) -> Path:
    return damaged(FIXTURES / name, tmp_path / "copy", change)


DAMAGE: dict[str, tuple[Edit, str]] = {
    "NaN": (lambda t, c: t[GATE].fill_(torch.nan), f"tensor {GATE} holds a NaN or an infinity"),
    "infinity": (lambda t, c: t[GATE][0].fill_(torch.inf), f"tensor {GATE} holds a NaN or an infinity"),
    "eight bits": (lambda t, c: t.update({GATE: t[GATE].to(torch.float8_e4m3fn)}), f"{GATE} is quantised, to float8"),
    "four bits": (
        lambda t, c: (t.pop(GATE), t.update({GATE.replace("weight", "qweight"): torch.zeros(4, 40).int()})),
        r"gate_proj\.weight is missing \(it is stored quantised, as midlayer\.mlp\.gate_proj\.qweight: dequantise it",
    ),
    "a prefix": (
        lambda t, c: [t.update({f"module.{name}": t.pop(name)}) for name in list(t)],
        r"tensor fc\.weight is missing \(the file has module\.fc\.weight\)",
    ),
    "no number": (lambda t, c: c.update(rms_norm_eps=float("inf")), "rms_norm_eps is inf, expected a positive number"),
    "not a number": (lambda t, c: c.update(rms_norm_eps=float("nan")), "not JSON: it holds a NaN"),
    "angles as text": (lambda t, c: c.update(rope_parameters="default"), "rope_parameters is 'default', expected an"),
    "scaling as a list": (lambda t, c: c.update(rope_scaling=[4.0]), r"rope_scaling is \[4\.0\], expected an object"),
    "a kind as text": (lambda t, c: c.update(architectures="LlamaForCausalLM"), "'LlamaForCausalLM', expected a list"),
    "a kind as number": (lambda t, c: c.update(architectures=[3]), r"architectures is \[3\], expected a list of names"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a row of NaN that the loop indexes with, a packed tensor that is "missing", a stack trace for a config."""
    change, message = DAMAGE[damage]
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(copied("eagle/eagle3", tmp_path, change), TARGET)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("shard", ["", 3, "../model.safetensors"])
def test_an_index_names_files_of_its_folder(tmp_path: Path, shard: Any) -> None:
    """Kills an index that crashes the reader, or leads it out of the folder."""
    folder = copied("eagle/eagle3", tmp_path, lambda t, c: None)
    index = {"weight_map": {"fc.weight": shard} if shard else {}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadInput, match="not an index of shards in this folder"):
        load_drafter(folder, TARGET)


FOLDERS = {row.folder: row for row in ROWS.values() if row.folder}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_tensor_without_a_place_is_refused_whatever_it_holds(tmp_path: Path, folder: str) -> None:
    """Kills a file of which a part is left unread: a map, a mask or numbers whose meaning no reader here knows."""
    row = FOLDERS[folder]
    target = target_that_remembers(row.target)
    config = "config.json" if (FIXTURES / folder / "config.json").is_file() else PARAMS
    for kind in (torch.int64, torch.bool, torch.uint8, torch.float32):

        def stray(tensors: dict[str, torch.Tensor], config: dict[str, Any], kind: torch.dtype = kind) -> None:
            name = next((name for name in sorted(tensors) if name.startswith("mtp.")), min(tensors))
            tensors[f"{name}_map"] = torch.ones(3).to(kind)

        changed = damaged(FIXTURES / folder, tmp_path / str(kind), stray, config)
        with pytest.raises(BadInput, match=r"_map (is in the file, and the config )?has no place"):
            row.read(changed, target, **row.options)


def test_what_d2t_says_needs_no_t2d(tmp_path: Path) -> None:
    """Kills a refusal of files that leave out t2d, and other tokens drafted from them."""
    whole, less = FIXTURES / "eagle" / "eagle3", copied("eagle/eagle3", tmp_path, lambda t, c: t.pop("t2d"))
    a, b = (load_drafter(folder, TARGET).network for folder in (whole, less))
    assert torch.equal(a.targets, b.targets)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, c: t.update({"lm_head.weight": t["lm_head.weight"] * torch.nan}), "lm_head.weight holds a NaN"),
        (lambda t, c: t.update({"lm_head.weight": t["lm_head.weight"].to(torch.float8_e4m3fn)}), "has dtype F8_E4M3"),
        (lambda t, c: c.update(num_hidden_layers=2, layer_types=None), r"model\.layers\.2\..* is in the file, and the"),
        (lambda t, c: t.update({"model.layers.0.mlp.up_proj.bias": torch.ones(64)}), r"up_proj\.bias is in the file"),
        (lambda t, c: c.update(use_bidirectional_attention="all"), "decoding needs a causal model"),
        (lambda t, c: c.update(rms_norm_eps="1e-6"), "transformers cannot load it: .*rms_norm_eps.*: .*1e-6"),
    ],
    ids=["NaN", "eight bits", "a layer more", "a bias", "not causal", "size as text"],
)
def test_a_target_is_what_its_file_holds(tmp_path: Path, change: Edit, message: str) -> None:
    """Kills a target that leaves out layers or biases of its file, or rounds eight bits to floats without a scale."""
    with pytest.raises(BadInput, match=message) as raised:
        load_target(copied("tiny/target", tmp_path, change))
    assert "\n" not in str(raised.value)


def test_a_target_may_carry_heads_and_old_buffers(tmp_path: Path) -> None:
    """Kills a refusal of heads that stand beside the layers, and of the angles that old releases stored."""
    beside = {
        "medusa_head.0.1.weight": torch.ones(8, 32),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
    }
    load_target(copied("tiny/target", tmp_path, lambda t, c: t.update(beside)))


def test_a_parallel_draft_model_is_refused(tmp_path: Path) -> None:
    """Kills PARD's models run token by token, which they were not trained for."""
    with pytest.raises(BadInput, match="pard_token is given"):
        load_drafter(copied("tiny/ar", tmp_path, lambda t, c: c.update(pard_token=7)), TARGET)
