"""`refengine checkpoint convert`: names and values are kept, and a pickle runs nothing."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from refengine.commands.convert_pickle import convert
from refengine.errors import BadInput


def test_convert_keeps_every_name_and_value(tmp_path: Path) -> None:
    """Kills a converter that renames, reorders shared memory into one tensor, or drops an entry."""
    base = torch.arange(12.0).view(3, 4)
    held = {"0.0.linear.weight": base, "0.1.weight": base.t(), "1.0.linear.bias": torch.ones(2).half()}
    torch.save(held, tmp_path / "heads.pt")
    assert convert(tmp_path / "heads.pt", tmp_path / "heads.safetensors") == list(held)
    read = load_file(tmp_path / "heads.safetensors")
    assert read.keys() == held.keys()
    assert all(torch.equal(read[name], held[name]) and read[name].dtype is held[name].dtype for name in held)
    with pytest.raises(BadInput, match="is there already"):
        convert(tmp_path / "heads.pt", tmp_path / "heads.safetensors")


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def test_convert_runs_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """Kills a converter that executes what a pickle asks for, or that leaves half a file."""
    torch.save({"w": Hostile(tmp_path / "ran")}, tmp_path / "hostile.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps({"w": Hostile(tmp_path / "ran")}))
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    torch.save({"w": torch.ones(2), "epoch": 3}, tmp_path / "mixed.pt")
    (tmp_path / "noise.pt").write_bytes(b"\x00" * 100)
    before = sorted(tmp_path.iterdir())
    messages = {
        "hostile.pt": "not a readable",
        "plain.pkl": "not a readable",
        "list.pt": "holds a list",
        "mixed.pt": "entry 'epoch' is a int",
        "noise.pt": "not a readable",
        "absent.pt": "no such file",
    }
    for name, message in messages.items():
        with pytest.raises(BadInput, match=message) as raised:
            convert(tmp_path / name, tmp_path / "out.safetensors")
        assert "\n" not in str(raised.value)
    assert sorted(tmp_path.iterdir()) == before
