"""Qwen's multi-token prediction module from its checkpoint into speculators' layout, and stitched back after training.

Names and the packing of experts change, no value does. Two things that speculators 0.9.0 writes are left out: its
converter's `verifier_lm_head.weight` full of NaN, and a second set of experts where the verifier's are fused. What is
written appears whole or not at all.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from refengine.decoder.checkpoints.layouts.qwen_mtp import (
    EXPERTS,
    FUSED,
    NATIVE,
    is_speculators,
    layer_config,
    own_table,
    read,
    speculators_name,
)
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.tensors import weight_files
from refengine.errors import BadInput


def convert_mtp(source: Path, out: Path, steps: int = 3) -> list[str]:
    """The `mtp.*` of a checkpoint as a folder in speculators' layout; returns the names written. Raises BadInput.

    steps  drafted tokens a round, which the config says
    """
    checkpoint = Checkpoint(source)
    config = checkpoint.config
    if is_speculators(config):
        config.refuse("this is speculators' layout already")
    if steps < 1:
        raise BadInput(f"{steps} drafted tokens a round: there must be one")
    shape, tensors = read(checkpoint)
    inner = layer_config(config)
    table = {speculators_name(name): name for name in own_table(shape, fused=True)}
    written = {theirs: packed(tensors, own) for theirs, own in table.items()}
    method = {"accept_tolerance": 0.0, "proposal_type": "greedy", "speculative_tokens": steps, "verifier_accept_k": 1}
    fields = {
        "architectures": ["MTPDraftModel"],
        "dtype": str(written[speculators_name("fc.weight")].dtype).removeprefix("torch."),
        "num_nextn_predict_layers": 1,
        "speculators_config": {
            "algorithm": "mtp",
            "default_proposal_method": "greedy",
            "proposal_methods": [method],
            "verifier": {"architectures": config.fields.get("architectures") or [], "name_or_path": source.name},
        },
        "speculators_model_type": "mtp",
        "tie_word_embeddings": False,
        "transformer_layer_config": dict(inner.fields),
    }
    with appearing(out) as folder:
        (folder / "config.json").write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        save_file(written, folder / "model.safetensors", metadata={"format": "pt"})
    return sorted(written)


def stitch_mtp(module: Path, verifier: Path, out: Path) -> list[str]:
    """A copy of the verifier with the module of speculators' layout in the place of its own, in its own precision.

    Returns the names replaced. Raises BadInput where the two are not of one shape.
    """
    ours, verifiers = Checkpoint(module), Checkpoint(verifier)
    if not is_speculators(ours.config):
        ours.config.refuse("this is not speculators' layout")
    (shape, tensors), (theirs, _) = read(ours), read(verifiers)
    for name, size in vars(shape).items():
        if getattr(theirs, name) != size:
            raise BadInput(f"{module}: its {name} is {size}, and the verifier's is {getattr(theirs, name)}")
    replaced = sorted(name for name in verifiers.shapes if name.startswith(NATIVE))
    with appearing(out) as folder:
        shutil.copytree(verifier, folder, dirs_exist_ok=True)
        for file in weight_files(folder):
            replace(file, tensors)
    return replaced


def replace(file: Path, tensors: Mapping[str, Tensor]) -> None:
    """The `mtp.*` of one file by these tensors, in the packing that the file has; all else as it was."""
    with safe_open(str(file), framework="pt") as opened:
        held, metadata = {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()  # noqa: SIM118
    own = [name for name in held if name.startswith(NATIVE)]
    for name in own:
        held[name] = packed(tensors, name.removeprefix(NATIVE)).to(held[name].dtype)
    if own:
        save_file(held, file, metadata=metadata)


def packed(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """One tensor of the file; `name` may be that of all experts together, where `tensors` has each on its own."""
    if name not in (EXPERTS + FUSED[0], EXPERTS + FUSED[1]):
        return tensors[name].contiguous()
    count = sum(key.startswith(EXPERTS) and key.endswith(".down_proj.weight") for key in tensors)
    parts = ("gate_proj", "up_proj") if name.endswith(FUSED[0]) else ("down_proj",)
    return torch.stack([torch.cat([tensors[f"{EXPERTS}{i}.{part}.weight"] for part in parts]) for i in range(count)])


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder to write into that becomes `out` at the end, and is gone after an error."""
    if out.exists():
        raise BadInput(f"{out} is there already: it is not overwritten")
    if not out.parent.is_dir():
        raise BadInput(f"{out.parent} is not a folder")
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    partial.mkdir()
    try:
        yield partial
        partial.replace(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
