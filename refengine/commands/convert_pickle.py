"""`refengine checkpoint convert IN OUT.safetensors`: a pickle of tensors, read in a child process, names unchanged.

Reading a pickle runs whatever it asks for. `weights_only=True` lets it ask for tensors and plain containers alone; the
child process, with a limit on time and memory, is for what gets past that. The result appears whole or not at all.
"""

import os
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from refengine.audit.sandbox.child import Child, Handler
from refengine.errors import BadInput

READING_SECONDS = 600.0
MEMORY_GIB = 64  # real drafters have up to a few GB


def convert(source: Path, out: Path, seconds: float = READING_SECONDS) -> list[str]:
    """Convert; returns the names of the tensors. Raises BadInput with one line, and then leaves nothing behind."""
    if not source.is_file():
        raise BadInput(f"{source}: no such file")
    if out.suffix != ".safetensors":
        raise BadInput(f"{out}: the output's name must end in .safetensors")
    if out.exists():
        raise BadInput(f"{out} is there already: it is not overwritten")
    if not out.parent.is_dir():
        raise BadInput(f"{out.parent} is not a folder")
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with Child("refengine.commands.convert_pickle:make", preload=("torch",), memory_gib=MEMORY_GIB) as child:
            outcome = child.ask([str(source), str(partial)], seconds)
        if outcome.kind == "hang":
            raise BadInput(f"{source}: reading it took more than {seconds:g} seconds")
        if not outcome.ok:
            raise BadInput(f"{source}: the reader failed: {outcome.message}")
        names, refusal = outcome.value
        if refusal:
            raise BadInput(f"{source}: {refusal}")
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return list(names)


def tensors_of(content: object) -> dict[str, Tensor]:
    """The tensors of a state dict, contiguous and apart (safetensors stores no shared memory). Raises BadInput."""
    if not isinstance(content, dict) or not content:
        raise BadInput(f"holds a {type(content).__name__}, expected a non-empty dictionary of tensors")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise BadInput(f"entry {name!r} is a {type(value).__name__}, expected a tensor")
    return {name: value.detach().clone().contiguous() for name, value in content.items()}


# --- the child's side ------------------------------------------------------------------------------------------------


def make() -> Handler:
    """The factory that Child names."""
    return read


def read(files: list[str]) -> tuple[list[str], str]:
    """Read the first file and write the second: (names of the tensors, why it was refused)."""
    source, out = files
    try:
        tensors = tensors_of(torch.load(source, map_location="cpu", weights_only=True))
    except BadInput as error:
        return [], str(error)
    except Exception as error:  # a damaged or hostile file may raise anything; the parent needs one line
        # The first sentence: torch goes on to advise how to load it all the same, which is to run what it holds.
        reason = str(error).strip().splitlines() or [""]
        return [], f"not a readable dictionary of tensors: {type(error).__name__}: {reason[0].split('. ')[0]}"
    save_file(tensors, out)
    return list(tensors), ""
