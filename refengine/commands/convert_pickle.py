"""`refengine checkpoint convert IN OUT.safetensors`: a pickle of tensors, read in a child process, names unchanged.

Reading a pickle runs whatever it asks for. `weights_only=True` lets it ask for tensors and plain containers alone; the
child process, with a limit on time, memory and file size, is for what gets past that. The result appears whole or not
at all.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from refengine.errors import BadInput

SECONDS = 600
ADDRESS_SPACE = 64 << 30  # of a process that maps its input and its output; real drafters have up to a few GB


def convert(source: Path, out: Path, seconds: float = SECONDS) -> list[str]:
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
    command = [sys.executable, "-m", "refengine.commands.convert_pickle", str(source), str(partial)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        if child.returncode != 0:
            said = child.stderr.strip().splitlines()
            raise BadInput(f"{source}: {said[-1] if said else f'the reader died with status {child.returncode}'}")
        partial.replace(out)
    except subprocess.TimeoutExpired:
        raise BadInput(f"{source}: reading it took more than {seconds:g} seconds") from None
    finally:
        partial.unlink(missing_ok=True)
    return child.stdout.splitlines()


def tensors_of(content: object) -> dict[str, Tensor]:
    """The tensors of a state dict, contiguous and apart (safetensors stores no shared memory). Raises BadInput."""
    if not isinstance(content, dict) or not content:
        raise BadInput(f"holds a {type(content).__name__}, expected a non-empty dictionary of tensors")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise BadInput(f"entry {name!r} is a {type(value).__name__}, expected a tensor")
    return {name: value.detach().clone().contiguous() for name, value in content.items()}


def read(source: Path) -> dict[str, Tensor]:
    """The tensors of a pickle. A damaged or hostile file may raise anything: what is raised here is BadInput."""
    try:
        return tensors_of(torch.load(source, map_location="cpu", weights_only=True))
    except BadInput:
        raise
    except Exception as error:
        # The first sentence: torch goes on to advise how to load it all the same, which is to run what it holds.
        reason = str(error).strip().splitlines() or [""]
        kind = type(error).__name__
        raise BadInput(f"not a readable dictionary of tensors: {kind}: {reason[0].split('. ')[0]}") from None


def main(source: str, out: str) -> None:
    """The child: under limits, read, check, write, print the names."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        tensors = read(Path(source))
    except BadInput as error:
        sys.exit(str(error))
    save_file(tensors, out)
    print("\n".join(tensors))


if __name__ == "__main__":
    main(*sys.argv[1:])
