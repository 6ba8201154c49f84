"""Qwen's multi-token prediction module: conversion to speculators' layout and stitching back, against recordings."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from refengine.commands.convert_mtp import convert_mtp, stitch_mtp
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.qwen_mtp import QwenMTP
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TINY, GOLDEN = FIXTURES / "qwen_mtp", FIXTURES / "golden"


@pytest.mark.parametrize("case", ["sp_mtp_qwen3next_A", "sp_mtp_qwen35_A", "sp_mtp_qwen35moe_A"])
def test_conversion_of_the_recording(tmp_path: Path, case: str) -> None:
    """Kills a name, a packing or a value that is not the official converter's; its NaN is all that is left out."""
    convert_mtp(GOLDEN / case / "target", tmp_path / "ours")
    ours = load_file(tmp_path / "ours" / "model.safetensors")
    theirs = load_file(GOLDEN / case / "drafter" / "model.safetensors")
    assert bool(theirs.pop("verifier_lm_head.weight").isnan().all())
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(x, theirs[name]) for name, x in ours.items())
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    wanted = json.loads((GOLDEN / case / "drafter" / "config.json").read_text())
    for name in ("speculators_config", "speculators_model_type", "architectures", "num_nextn_predict_layers", "dtype"):
        assert config[name] == wanted[name]


@pytest.mark.parametrize("case", ["sp_mtp_qwen3next_A", "sp_mtp_qwen35moe_A"])
def test_stitching_of_the_recording(tmp_path: Path, case: str) -> None:
    """Kills old experts that stay where the verifier's are fused, and a tensor of the verifier that is touched."""
    folder = GOLDEN / case
    stitch_mtp(folder / "finetuned", folder / "target", tmp_path / "ours")
    ours, verifier = (load_file(where / "model.safetensors") for where in (tmp_path / "ours", folder / "target"))
    theirs = load_file(folder / "stitched_mtp_only.safetensors")
    assert ours.keys() == verifier.keys()
    assert all(torch.equal(x, verifier[name]) for name, x in ours.items() if not name.startswith("mtp."))
    target = load_target(tmp_path / "ours", torch.float64)
    net = load_drafter(tmp_path / "ours", target).network
    assert isinstance(net, QwenMTP)
    single = {name.removeprefix("mtp."): x for name, x in theirs.items() if name.endswith(".weight")}
    assert single.keys() == net.w.tensors.keys() - {"embed_tokens.weight", "lm_head.weight"}
    assert all(torch.equal(x.double(), net.w.tensors[name]) for name, x in single.items())
    if case == "sp_mtp_qwen35moe_A":  # the official result holds both packings, and they disagree
        both = {name: x for name, x in ours.items() if not name.startswith("mtp.")} | theirs
        save_file(both, tmp_path / "ours" / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(BadInput, match="a file holds both"):
            load_drafter(tmp_path / "ours", target)


def test_shards_are_stitched_each_in_its_place(tmp_path: Path) -> None:
    """Kills a module that lands in one shard, or an index that no longer tells where a tensor is."""
    tensors = load_file(TINY / "target" / "model.safetensors")
    shutil.copytree(TINY / "target", tmp_path / "verifier")
    (tmp_path / "verifier" / "model.safetensors").unlink()
    where = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(sorted(tensors))}
    for shard in sorted(set(where.values())):
        own = {name: x for name, x in tensors.items() if where[name] == shard}
        save_file(own, tmp_path / "verifier" / shard, metadata={"format": "pt"})
    (tmp_path / "verifier" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    shutil.copytree(TINY / "speculators", tmp_path / "tuned")
    doubled = {name: 2 * x for name, x in load_file(TINY / "speculators" / "model.safetensors").items()}
    save_file(doubled, tmp_path / "tuned" / "model.safetensors")
    stitch_mtp(tmp_path / "tuned", tmp_path / "verifier", tmp_path / "out")
    for shard in sorted(set(where.values())):
        for name, x in load_file(tmp_path / "out" / shard).items():
            assert torch.equal(x, tensors[name] * (2 if name.startswith("mtp.") else 1)), name


def test_conversions_refuse_what_they_are_not_for(tmp_path: Path) -> None:
    """Kills an output that is overwritten, half written, or made of two models."""
    (tmp_path / "there").mkdir()
    refused = [
        (lambda: convert_mtp(TINY / "target", tmp_path / "there"), "is there already"),
        (lambda: convert_mtp(TINY / "target", tmp_path / "no" / "where"), "is not a folder"),
        (lambda: convert_mtp(TINY / "target", tmp_path / "out", 0), "0 drafted tokens"),
        (lambda: convert_mtp(TINY / "speculators", tmp_path / "out"), "speculators' layout already"),
        (lambda: convert_mtp(FIXTURES / "tiny" / "target", tmp_path / "out"), "model_type is 'qwen3'"),
        (lambda: stitch_mtp(TINY / "target", TINY / "target", tmp_path / "out"), "this is not speculators' layout"),
        (
            lambda: stitch_mtp(TINY / "speculators", GOLDEN / "sp_mtp_qwen35_A" / "target", tmp_path / "out"),
            "its vocab_size is 8, and the verifier's is 96",
        ),
    ]
    for act, message in refused:
        with pytest.raises(BadInput, match=message):
            act()
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
