"""The released layouts of Medusa (FasterDecoding/Medusa e2a5d20).

Medusa-1: the heads alone, a pickle `medusa_lm_head.pt` (convert it), names `{i}.{j}.linear.weight`, and a config of a
few fields that says nothing of sizes. Medusa-2: a whole fine-tuned model, the same names behind `medusa_head.`. The
legacy trainer's `version: 2`, which is no Medusa-2, stores residual layers alone, and its heads end in the target's.

The residual layers of a head are one module, repeated. A pickle has it under every name; transformers, which stores
shared memory once, keeps the first name alone.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from refengine.decoder.checkpoints.reading.causal_lm import reason
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout, says
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.from_target import head, on_target
from refengine.decoder.drafters.medusa import Medusa, Shape
from refengine.decoder.drafters.medusa_trees import TREES, tree_for
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

PREFIX = "medusa_head."


def load(checkpoint: Checkpoint, target: Target, tree: Sequence[tuple[int, ...]] | None = None) -> Medusa:
    """tree: see `Medusa`; None: the one that the released code would pick."""
    config, names, folder = checkpoint.config, checkpoint.shapes, checkpoint.folder
    whole = any(name.startswith(PREFIX) for name in names)
    prefix = PREFIX if whole else ""
    legacy = config.fields.get("version") == "2" and not whole
    shape = _shape(config, names, prefix, target)
    repeats = repeated(shape) if not any(prefix + name in names for name in repeated(shape)) else {}
    left_out = set(repeats) | ({f"{i}.{shape.layers}.weight" for i in range(shape.heads)} if legacy else set())
    stored = {name: size for name, size in heads(shape).items() if name not in left_out}
    table = {prefix + name: size for name, size in stored.items()} | (_base(folder, config) if whole else {})
    found = checkpoint.read(table)
    tensors = on_target({name: found[prefix + name] for name in stored}, target)
    tensors |= {name: tensors[first] for name, first in repeats.items()}
    tensors |= {f"{i}.{shape.layers}.weight": head(target) for i in range(shape.heads) if legacy}
    base = "" if legacy else _base_name(folder if whole else None, config)
    return Medusa(shape, tensors, TREES[tree_for(base)] if tree is None else tree)


def _base_name(whole: Path | None, config: Config) -> str:
    """What the released code picks the tree by: the name that a whole model is loaded by, else the base model's."""
    if whole is not None and tree_for(str(whole)) != tree_for(""):
        return str(whole)
    return str(config.fields.get("base_model_name_or_path") or config.fields.get("_name_or_path") or "")


def _shape(config: Config, names: Mapping[str, tuple[int, ...]], prefix: str, target: Target) -> Shape:
    declared, layers = config.integer("medusa_num_heads"), config.integer("medusa_num_layers", least=0)
    numbers = [re.match(rf"{re.escape(prefix)}(\d+)\.", name) for name in names]
    there = 1 + max((int(number[1]) for number in numbers if number), default=-1)
    if prefix and there > declared:
        config.refuse(f"medusa_num_heads is {declared}, and the file has {there} heads")
    # The released Medusa-1 configs say 2 where the file has 5, and the released loader takes 5.
    shape = Shape(max(there, declared), layers, target.vocabulary, target.width, target.layers)
    first = names.get(f"{prefix}0.{layers}.weight")
    if first is not None and first != (target.vocabulary, target.width):
        config.refuse(
            f"tensor {prefix}0.{layers}.weight maps a width of {first[-1]} to {first[0]} tokens, "
            f"and the target has width {target.width} and {target.vocabulary} tokens: they were made for another target"
        )
    return shape


def repeated(s: Shape) -> dict[str, str]:
    """The names of the residual layers after a head's first, each with the name of the first."""
    parts = ("weight", "bias")
    return {
        f"{i}.{j}.linear.{part}": f"{i}.0.linear.{part}"
        for i in range(s.heads)
        for j in range(1, s.layers)
        for part in parts
    }


def heads(s: Shape) -> dict[str, tuple[int, ...]]:
    """Every tensor of the heads, with its shape."""
    table: dict[str, tuple[int, ...]] = {}
    for i in range(s.heads):
        for j in range(s.layers):
            table[f"{i}.{j}.linear.weight"] = (s.hidden_size, s.hidden_size)
            table[f"{i}.{j}.linear.bias"] = (s.hidden_size,)
        table[f"{i}.{s.layers}.weight"] = (s.vocab_size, s.hidden_size)
    return table


def _base(folder: Path, config: Config) -> dict[str, tuple[int, ...]]:
    """The tensors of the model that a Medusa-2 file holds beside its heads, without allocating any."""
    auto: Any = AutoModelForCausalLM
    try:
        with torch.device("meta"):
            model = auto.from_config(AutoConfig.from_pretrained(folder, local_files_only=True))
    except Exception as error:  # transformers raises whatever its parts raise; the first line says what was wrong
        raise BadInput(f"{config.path}: no model of transformers: {reason(error)}") from error
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    return {name: tuple(x.shape) for name, x in parameters.items()}


LAYOUTS = (Layout("Medusa", says("medusa_num_heads"), load),)
