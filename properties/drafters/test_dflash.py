"""The layouts of DFlash: what a config may say and may not, what is borrowed, windows by hand, fixtures and schema."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from properties.helpers.checkpoints.damaged import Edit, damaged
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.reading.from_target import embedding, head, written_embeddings
from refengine.decoder.loop import begin
from refengine.decoder.networks.windows import Window
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TARGET = load_target(FIXTURES / "tiny" / "target", torch.float32)
LAYOUTS = ("zlab", "transformers", "speculators")


def edited(name: str, tmp_path: Path, change: Edit) -> Path:
    return damaged(FIXTURES / "dflash" / name, tmp_path / name, change)


def rows(folder: Path) -> Tensor:
    drafter = load_drafter(folder, TARGET)
    drafter.start((), begin(TARGET, (4, 3, 4, 0, 2), drafter.taps))
    return drafter.rows(6, 5)


DAMAGE: dict[str, tuple[str, Edit, str]] = {
    "no taps": ("zlab", lambda t, c: c["dflash_config"].pop("target_layer_ids"), "target_layer_ids is missing"),
    "taps beyond": ("zlab", lambda t, c: c["dflash_config"].update(target_layer_ids=[0, 3]), "has 3, outside -1"),
    "fewer taps": (
        "zlab",
        lambda t, c: c["dflash_config"].update(target_layer_ids=[0]),
        r"fc\.weight has shape \[32, 64\], the config asks for \[32, 32\]",
    ),
    "two masks": ("zlab", lambda t, c: c.update(mask_token_id=6), "mask_token_id is 7, but .* says 6"),
    "two block sizes": ("zlab", lambda t, c: c["dflash_config"].update(block_size=9), "block_size is 3, but .* says 9"),
    "mask outside": ("zlab", lambda t, c: c["dflash_config"].update(mask_token_id=8), "mask_token_id 8 is outside"),
    "other depth": ("zlab", lambda t, c: c.update(num_target_layers=4), "num_target_layers is 4, and the target has 3"),
    "other width": ("zlab", lambda t, c: c.update(hidden_size=16), "hidden_size is 16, and the target has 32"),
    "causal": ("zlab", lambda t, c: c["dflash_config"].update(causal=True), "asks for causal attention"),
    "more layers": ("zlab", lambda t, c: c.update(num_hidden_layers=3, layer_types=None), r"tensor layers\.2\..* is"),
    "embeddings": ("zlab", lambda t, c: t.update({"lm_head.weight": torch.ones(8, 32)}), "lm_head.weight is in"),
    "odd heads": ("zlab", lambda t, c: c.update(head_dim=5), "head_dim is 5"),
    "groups": ("zlab", lambda t, c: c.update(num_key_value_heads=3), "4 heads do not divide over 3"),
    "z-lab's names": (
        "transformers",
        lambda t, c: t.update({"fc.weight": t.pop("encoder.fc.weight")}),
        r"tensor encoder\.fc\.weight is missing",
    ),
    "no window": ("transformers", lambda t, c: c.update(sliding_window=None), "no sliding_window is set"),
    "layer types": ("transformers", lambda t, c: c.update(layer_types=["full_attention"]), "layer_types has 1 entries"),
    "unknown layer": (
        "transformers",
        lambda t, c: c.update(layer_types=["linear_attention", "full_attention"]),
        "layer_types has 'linear_attention'",
    ),
    "last layer": (
        "speculators",
        lambda t, c: c.update(aux_hidden_state_layer_ids=[0, 1, 3]),
        r"aux_hidden_state_layer_ids has 3, outside 0 \.\. 2",
    ),
    "too many drafts": (
        "speculators",
        lambda t, c: c["speculators_config"]["proposal_methods"][0].update(speculative_tokens=3),
        "speculative_tokens is 3, and a block of 3 has 2 slots",
    ),
    "maps that disagree": ("speculators", lambda t, c: t.update(t2d=~t["t2d"]), "d2t and t2d disagree"),
    "no maps": ("speculators", lambda t, c: c.update(draft_vocab_size=8), "tensor d2t is in the file.*and 1 more"),
    "large vocabulary": ("speculators", lambda t, c: c.update(draft_vocab_size=9), "draft_vocab_size is 9"),
    "no window set": (
        "speculators",
        lambda t, c: c["transformer_layer_config"].update(use_sliding_window=False),
        "no sliding_window is set",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_contradicts_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that takes the default of the class, or the nearest thing that loads."""
    name, change, message = DAMAGE[damage]
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(edited(name, tmp_path, change), TARGET)
    assert "\n" not in str(raised.value)


def test_later_files_of_zlab_say_the_same(tmp_path: Path) -> None:
    """Kills a reader of early files alone: later ones have the block size inside, and some the mask outside."""

    def later(tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        config["dflash_config"]["block_size"] = config.pop("block_size")
        config["mask_token_id"] = config["dflash_config"].pop("mask_token_id")

    assert torch.equal(rows(edited("zlab", tmp_path, later)), rows(FIXTURES / "dflash" / "zlab"))


def test_older_files_of_speculators_hold_what_newer_ones_borrow(tmp_path: Path) -> None:
    """Kills a stored embedding or head that is replaced by the target's, and a head that is not cut to the drafted."""

    def older(tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        tensors["embed_tokens.weight"] = embedding(TARGET).clone()
        tensors["lm_head.weight"] = head(TARGET)[tensors["t2d"]].clone()

    def other(tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        older(tensors, config)
        tensors["embed_tokens.weight"] = tensors["embed_tokens.weight"].roll(1, 0)

    right = rows(FIXTURES / "dflash" / "speculators")
    assert torch.equal(rows(edited("speculators", tmp_path / "older", older)), right)
    assert not torch.equal(rows(edited("speculators", tmp_path / "other", other)), right)
    assert right.isneginf().sum(-1).tolist() == [2, 2]  # words 1 and 7 cannot be drafted


def test_shifted_slots_start_at_the_anchor(tmp_path: Path) -> None:
    """Kills `sample_from_anchor` that only changes how many tokens are drafted."""

    def shifted(tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        config["sample_from_anchor"] = True
        config["speculators_config"]["proposal_methods"][0]["speculative_tokens"] = 3

    moved, right = rows(edited("speculators", tmp_path, shifted)), rows(FIXTURES / "dflash" / "speculators")
    assert len(moved) == 3
    assert torch.equal(moved[1:], right)


def test_borrowed_embeddings_are_what_the_target_writes() -> None:
    """Kills Gemma's embeddings without their factor, the root of H."""
    config = Gemma3TextConfig(
        vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8,
    )  # fmt: skip
    target = TransformersTarget(Gemma3ForCausalLM(config).eval())
    torch.testing.assert_close(written_embeddings(target), embedding(target) * 4.0)
    assert torch.equal(written_embeddings(TARGET), embedding(TARGET))


def test_windows_by_hand() -> None:
    """Kills a window that is one row off, or that moves with the row where it belongs to the block."""
    device = torch.device("cpu")
    by_row, by_block, causal = Window(2, True), Window(2, False), Window(1, False, causal=True)
    assert by_row.block(3, 4, device).int().tolist() == [
        [0, 1, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 1],
    ]
    assert by_block.block(3, 2, device).int().tolist() == [[0, 1, 1, 1, 1]] * 2
    assert causal.block(3, 2, device).int().tolist() == [[0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert Window(1, True, causal=True).block(3, 2, device).int().tolist() == [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]
