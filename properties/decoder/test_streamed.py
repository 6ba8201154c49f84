"""A target whose layers are streamed has the bits of one that is held whole, and takes the memory that it is given."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from properties.helpers.streaming import MIB, generated, holds_in
from refengine.decoder.checkpoints.load import load_target
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.streamed import load_streamed, stream_target
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

TARGETS = ["tiny/target", "gemma4/target", "golden/target_gemma4_deepspec", "golden/target_q3A"]  # the last: tied


def silent(*_: Any) -> None:
    """Nobody listens."""


def least(folder: Path, dtype: torch.dtype) -> int:
    """The smallest budget that does."""
    return load_streamed(Checkpoint(folder), dtype, 1 << 40, silent)[2].needed


def logits(target: Any) -> torch.Tensor:
    """Of a text, a tree that is taken back, and a row after it."""
    target.reset()
    text = target.run(chain_rows((1, 2, 0), 0, target.device)).logits
    target.keep(range(3))
    tree = target.run(tree_rows(1, (2, 0, 1), (-1, -1, 0), 3, target.device)).logits
    target.keep((0,))
    return torch.cat((text, tree, target.run(chain_rows((2,), 4, target.device)).logits))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("slots", [None, 32])
def test_streamed_layers_have_the_bits_of_whole_ones(name: str, dtype: torch.dtype, slots: int | None) -> None:
    """Kills a layer's weights in another layer's place, a stale buffer, angles made otherwise, a lost factor on the
    embeddings, an untied head; and tensors that begin elsewhere in a cache line than those of a mapped file do."""
    folder = FIXTURES / name
    whole = logits(load_target(folder, dtype, slots=slots))
    for budget in (1 << 40, least(folder, dtype)):
        told: list[str] = []
        target = stream_target(folder, dtype, budget, lambda what, share=None, told=told: told.append(what), slots)
        told.clear()
        assert torch.equal(logits(target), whole)
        assert bool(told) == (budget < 1 << 40)  # with memory for all of it, no pass reads anything


def test_between_passes_no_more_than_the_budget_is_held() -> None:
    """Kills a layer that is never dropped, and one that is dropped although it fits."""
    checkpoint = Checkpoint(FIXTURES / "golden" / "target_q3A")
    needed = least(checkpoint.folder, torch.float32)
    layer = (Checkpoint(checkpoint.folder), torch.float32)
    one = load_streamed(*layer, 1 << 40, silent)[2]
    size = one.bytes_of(one.names(next(iter(one.layers))))
    for more in (0, 1, 3):
        model, _, streamed = load_streamed(checkpoint, torch.float32, needed + more * size, silent)
        with torch.no_grad():
            model(torch.tensor([[1, 2, 0]]))
        held = sum(x.numel() * x.itemsize for x in {id(x): x for x in model.parameters() if not x.is_meta}.values())
        assert held == needed + (more - 1) * size
        assert len(streamed.kept) == more


def test_what_cannot_be_streamed_is_one_line(tmp_path: Path) -> None:
    """Kills a streamed load that is less strict than an ordinary one, or that begins what cannot fit."""
    folder = tmp_path / "target"
    config = (FIXTURES / "tiny" / "target" / "config.json").read_text()
    tensors = load_file(FIXTURES / "tiny" / "target" / "model.safetensors")
    folder.mkdir()
    (folder / "config.json").write_text(config)

    def refusal(changed: dict[str, torch.Tensor | None], budget: int = 1 << 40) -> str:
        kept = {name: x.contiguous() for name, x in {**tensors, **changed}.items() if x is not None}
        save_file(kept, folder / "model.safetensors")
        with pytest.raises(BadInput) as caught:
            stream_target(folder, torch.float32, budget, silent)
        return str(caught.value)

    norm = "model.layers.1.input_layernorm.weight"
    assert refusal({norm: None}) == f"{folder}: tensor {norm} is missing, or named otherwise: it is not streamed"
    assert "has shape [3], the config asks for" in refusal({norm: torch.ones(3)})
    assert (
        refusal({norm: tensors[norm] * torch.nan})
        == f"layer 1: tensor {norm.split('.', 3)[3]} holds a NaN or an infinity"
    )
    assert refusal({"model.norm.weight": tensors["model.norm.weight"] * torch.inf}).endswith("a NaN or an infinity")
    assert f"tensor {norm}2 is in the file, and the config has no place" in refusal({f"{norm}2": torch.ones(3)})
    assert re.search("embedding, head and one layer take .* MiB in float32, and 0 MiB are there", refusal({}, 1000))
    with pytest.raises(BadInput, match=r"experts.* is missing, or named otherwise: it is not streamed"):
        stream_target(FIXTURES / "qwen_mtp" / "target", torch.float32, 1 << 40, silent)


def test_weights_that_are_larger_than_their_memory_are_run(tmp_path: Path) -> None:
    """Kills streaming that keeps what it drops; ten times larger in `statistical_tests/test_streamed.py`."""
    holds_in(tmp_path, generated(tmp_path, 160, 30), 10, 24 * MIB)
