"""A copy of a checkpoint with something wrong in it, or something else in it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from safetensors.torch import load_file, save_file
from torch import Tensor

Edit: TypeAlias = Callable[[dict[str, Tensor], dict[str, Any]], object]


def damaged(source: Path, folder: Path, change: Edit, config: str = "config.json") -> Path:
    """`source` copied to `folder`, which must not exist, with its tensors and its config changed."""
    edit(Path(shutil.copytree(source, folder)), change, config)
    return folder


def edit(folder: Path, change: Edit, config: str = "config.json") -> None:
    """Change the tensors and the config of a checkpoint of one file."""
    (weights,) = folder.glob("*.safetensors")
    tensors, fields = load_file(weights), json.loads((folder / config).read_text())
    change(tensors, fields)
    save_file(tensors, weights, {"format": "pt"})
    (folder / config).write_text(json.dumps(fields))
