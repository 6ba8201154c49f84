"""A causal language model of transformers from its folder, held to its files as strictly as a drafter is."""

from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.tensors import FLOATING, check_held, weight_files
from refengine.errors import BadInput


def load_model(checkpoint: Checkpoint, dtype: torch.dtype | None) -> tuple[Any, list[str]]:
    """The model, and the tensors it had no place for: a target may carry heads that transformers does not run."""
    config, folder = checkpoint.config, checkpoint.folder
    weight_files(folder)
    auto: Any = AutoModelForCausalLM
    log: Any = logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        model, info = auto.from_pretrained(
            folder,
            dtype=dtype or "auto",
            attn_implementation="eager",
            experts_implementation="eager",
            use_safetensors=True,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # they are named below
            output_loading_info=True,
        )
    except Exception as error:  # transformers raises whatever its parts raise; the first line says what was wrong
        raise BadInput(f"{folder}: transformers cannot load it: {reason(error)}") from error
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
    if missing := sorted(info["missing_keys"]):
        raise BadInput(f"{folder}: tensor {missing[0]} is missing")
    for name, stored, wanted in sorted(info["mismatched_keys"]):
        raise BadInput(f"{folder}: tensor {name} has shape {list(stored)}, the config asks for {list(wanted)}")
    held = model.state_dict()
    quantised = bool(config.fields.get("quantization_config"))  # transformers may dequantise it
    for name, kind in sorted(checkpoint.kinds.items()):
        if name in held and held[name].is_floating_point() and kind not in FLOATING and not quantised:
            raise BadInput(f"{folder}: tensor {name} has dtype {kind}, expected floating point of 16 bits or more")
    check_held(held, str(folder))
    return model.eval().requires_grad_(False), sorted(info["unexpected_keys"])


def within(model: PreTrainedModel, left_over: list[str]) -> set[str]:
    """Those tensors without a place that are of the layers which the model has: a bias of one, a layer more.

    Heads and towers stand beside the layers, and a target may carry them; a buffer of angles is made anew.
    """
    modules = {name for name, _ in model.named_modules()}
    found = set()
    for name in left_over:
        parts = name.split(".")
        lists = {".".join(parts[:i]) for i, part in enumerate(parts) if part.isdigit()}
        if "rotary_emb" not in parts and any(f"{one}.0" in modules for one in lists):
            found.add(name)
    return found


def reason(error: Exception) -> str:
    """What somebody else's exception says, in one line: its first, and the next where that is only a heading."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    said = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return said if " " in said else f"{type(error).__name__} {said}".strip()
