"""Parallel heads: the Meta layout, every tensor used, each head equal to a Llama of transformers that ends in it."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, damaged
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.parallel_heads import llama, read, read_shape, table
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.drafters.parallel_heads import ParallelHeads, Shape
from refengine.decoder.loop import begin
from refengine.decoder.networks.layers import rotate, rotate_pairs
from refengine.engine.coins import Branching
from refengine.errors import BadInput
from refengine.exact.chance import runs
from refengine.selfcheck.drafters.laws.cells import CELLS, session
from refengine.source_tree import FIXTURES

FOLDER = FIXTURES / "heads" / "parallel_heads"
TEXT = (4, 3, 2, 0, 3, 2, 4, 3, 1, 6)


def noisy() -> tuple[Shape, dict[str, Tensor]]:
    """The fixture's tensors with norms away from 1 and everything else shaken, so that nothing is nearly inert."""
    shape, tensors = read(Checkpoint(FOLDER))
    generator = torch.Generator().manual_seed(0)
    return shape, {name: x + 0.2 * torch.randn(x.shape, generator=generator) for name, x in tensors.items()}


def drafted(shape: Shape, tensors: dict[str, Tensor], text: tuple[int, ...]) -> Tensor:
    """Logits of the target's own head and of every extra head, after `text`: [n, V]."""
    from refengine.decoder.targets.transformers import TransformersTarget

    blocks = [f"layers.{i}." for i in range(shape.target_layers)]
    target = TransformersTarget(llama(shape, tensors, blocks, None))
    drafter = ParallelHeads(shape, tensors)
    passed = begin(target, text, drafter.taps)
    drafter.start(text, passed)
    return torch.cat((passed.logits[-1:], drafter.heads()))


@pytest.mark.peer("parallel_heads")
def test_a_head_is_what_transformers_makes_of_a_llama_that_ends_in_it() -> None:
    """Kills a wrong rotary layout, a head off the wrong trunk layer, a norm of its own, a cache row too many."""
    shape, tensors = noisy()
    trunk = [f"layers.{i}." for i in range(shape.target_layers - 1)]
    for end in range(1, len(TEXT) + 1):
        ours = drafted(shape, tensors, TEXT[:end])
        for k in range(shape.extra_heads):
            peer = llama(shape, tensors, [*trunk, f"extra_heads.{k}."], None)
            theirs = peer(input_ids=torch.tensor([TEXT[:end]])).logits[0, -1]
            assert float((ours[k + 1] - theirs).abs().max()) <= 1e-5 * max(1.0, float(theirs.std()))


@pytest.mark.peer("parallel_heads")
def test_rotary_pairs_are_rotary_halves_in_another_order() -> None:
    """Kills a rotation of the wrong sign or frequency."""
    x, positions = torch.randn(5, 3, 8, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 5, 2, 9])
    reordered = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
    ours = rotate_pairs(x, positions, 100.0)
    theirs = rotate(reordered, positions, 100.0)
    assert torch.allclose(torch.cat((ours[..., 0::2], ours[..., 1::2]), -1), theirs, atol=1e-6)


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed() -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    whole, tensors = noisy()
    shape = replace(whole, n_layers=4)  # one block of the trunk suffices, and the pairs are half as many
    tensors = {name.replace("layers.2.", "layers.1."): x for name, x in tensors.items() if "layers.1." not in name}
    right = drafted(shape, tensors, TEXT)
    for name, tensor in tensors.items():
        assert float((drafted(shape, tensors | {name: torch.zeros_like(tensor)}, TEXT) - right).abs().max()) > 1e-4, (
            name
        )
    for a, b in itertools.combinations(tensors, 2):
        if tensors[a].shape == tensors[b].shape:
            swapped = drafted(shape, tensors | {a: tensors[b], b: tensors[a]}, TEXT)
            assert float((swapped - right).abs().max()) > 1e-4, (a, b)


def test_the_reported_rows_are_those_that_the_drafts_come_from() -> None:
    """Kills a q of another temperature, policy or head than the one its token is drawn from (the q-contract)."""
    play = session(CELLS["parallel_heads/leviathan/mixed"])
    play.rebuild((4, 3, 4, 0), (2,))
    state, law = play.state(), dict[tuple[int, ...], float]()
    product: dict[tuple[int, ...], float] = {}

    def propose(chance: Any) -> tuple[tuple[int, ...], float]:
        from refengine.decoder.protocols import Turn

        play.restore((4, 3, 4, 0), (2,), state)
        block = play.drafter.propose(Turn((4, 3, 4, 0), (4, 3, 4, 0, 2), play.policy, Branching(chance)))
        assert block.q is not None
        tokens = block.tokens[0].tolist()
        return tuple(tokens), float(block.q[0].gather(1, block.tokens[0][:, None]).prod())

    for (tokens, claimed), weight, _ in runs(propose):
        law[tokens] = law.get(tokens, 0.0) + float(weight)
        product[tokens] = claimed
    assert len(law) > 2
    assert max(abs(law[tokens] - product[tokens]) for tokens in law) <= 1e-12


# --- the released layout -------------------------------------------------------------------------------------------


DAMAGE: dict[str, tuple[Edit, str]] = {
    "missing": (lambda t, c: t.pop("norm.weight"), "tensor norm.weight is missing"),
    "missing in a head": (
        lambda t, c: t.pop("extra_heads.1.ffn_norm.weight"),
        "extra_heads.1.ffn_norm.weight is missi",
    ),
    "extra": (lambda t, c: t.update({"rope.freqs": torch.zeros(8)}), "tensor rope.freqs is in the file"),
    "misshapen": (lambda t, c: t.update({"norm.weight": torch.ones(31)}), r"norm.weight has shape \[31\]"),
    "wrong dtype": (lambda t, c: t.update({"norm.weight": t["norm.weight"].half()}), "norm.weight has dtype float"),
    "other count": (lambda t, c: c.update(n_future_tokens=4), "n_future_tokens is 4, and the file has 2 extra_heads"),
    "more layers": (lambda t, c: c.update(n_layers=6), "tensor layers.3.attention.wq.weight is missing"),
    "too few layers": (lambda t, c: c.update(n_layers=3), "n_layers is 3, too few for 2 extra_heads"),
    "odd heads": (lambda t, c: c.update(n_heads=3), "dim 32 does not divide into 3 heads"),
    "other width": (lambda t, c: c.update(multiple_of=64), r"feed_forward.w1.weight has shape \[96, 32\]"),
    "no width": (lambda t, c: c.pop("dim"), "dim is missing"),
    "vocabulary": (lambda t, c: c.update(vocab_size=9), r"tok_embeddings.weight has shape \[8, 32\]"),
}

# What Meta's params.json say of the width of a feed-forward layer, and the width in their files. From Llama to 3.2.
WIDTHS = {
    (4096, 256, None): 11008,
    (6656, 256, None): 17920,
    (8192, 256, None): 22016,
    (8192, 4096, 1.3): 28672,
    (4096, 1024, 1.3): 14336,
    (2048, 256, 1.5): 8192,
    (3072, 256, 1.0): 8192,
}


@pytest.mark.parametrize(("said", "width"), WIDTHS.items())
def test_a_feed_forward_layer_is_as_wide_as_in_released_files(said: tuple[int, int, float | None], width: int) -> None:
    """Kills a width that is rounded before it is multiplied, or down: files that say a factor would be refused."""
    names = ("dim", "multiple_of", "ffn_dim_multiplier")
    params = json.loads((FOLDER / "params.json").read_text()) | dict(zip(names, said, strict=True))
    assert read_shape(Config("params.json", {**params, "n_heads": 32}), 2, params["vocab_size"]).ffn_dim == width


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads or guesses around what a checkpoint gets wrong, as target or as drafter."""
    change, message = DAMAGE[damage]
    target = load_target(FOLDER)
    folder = damaged(FOLDER, tmp_path / "drafter", change, config="params.json")
    for load in (lambda: load_drafter(folder, target), lambda: load_target(folder)):
        with pytest.raises(BadInput, match=message) as raised:
            load()
        assert "\n" not in str(raised.value)


def test_it_drafts_for_its_own_trunk_alone(tmp_path: Path) -> None:
    """Kills heads on the features of a model that they were not trained with."""
    with pytest.raises(BadInput, match="a vocabulary of 8, and the target has 96: it drafts for itself"):
        load_drafter(FOLDER, load_target(FIXTURES / "golden" / "target_medusa1_A"))
    tensors = {k: x for k, x in load_file(FOLDER / "consolidated.safetensors").items() if not k.startswith("extra")}
    save_file(tensors, tmp_path / "consolidated.safetensors")
    params = json.loads((FOLDER / "params.json").read_text()) | {"n_layers": 3, "n_future_tokens": 1}
    (tmp_path / "params.json").write_text(json.dumps(params))
    with pytest.raises(BadInput, match="no extra_heads in the file"):
        load_drafter(tmp_path, load_target(tmp_path))
    (tmp_path / "consolidated.safetensors").rename(tmp_path / "consolidated.00.pth")
    with pytest.raises(BadInput, match=r"refengine checkpoint convert .*consolidated\.00\.pth"):
        load_target(tmp_path)


def test_the_schema_has_the_tensors_of_the_layout_and_no_others() -> None:
    """Kills a reader that has outgrown the statement of what is known about the layout."""
    schema = json.loads((FIXTURES / "schemas" / "parallel_heads.json").read_text())
    shape, tensors = read(Checkpoint(FOLDER))
    assert tensors.keys() == table(shape).keys()
    assert {re.sub(r"^(layers|extra_heads)\.\d+", "{block}", name) for name in tensors} == schema["tensors"].keys()
