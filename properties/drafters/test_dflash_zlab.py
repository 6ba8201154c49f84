"""What z-lab's later code (1012959) reads in a DFlash config, and its earlier code (44947fb) did not."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.reading.from_target import embedding, head
from refengine.decoder.drafters.dflash import DFlash
from refengine.decoder.networks.windows import Window
from refengine.decoder.targets.lent import Lent
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TARGET = load_target(FIXTURES / "tiny" / "target", torch.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(FIXTURES / "dflash" / "zlab", tmp_path / "drafter")


def saying(folder: Path, inside: dict[str, Any], **fields: Any) -> DFlash:
    """The drafter with these fields in its config, and these in its `dflash_config`."""
    config = json.loads((FIXTURES / "dflash" / "zlab" / "config.json").read_text())
    config["dflash_config"].update(inside)
    (folder / "config.json").write_text(json.dumps({**config, **fields}))
    return load_drafter(folder, TARGET)


def test_sliding_layers_slide(folder: Path) -> None:
    """Kills `layer_types` and `sliding_window` passed over, and layers that are full where no types are said."""
    types = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 3, "use_sliding_window": True}
    causal = Window(2, by_row=True, causal=True)
    assert saying(folder, {}, **types).shape.windows == (causal, None)
    assert saying(folder, {}, **types, is_causal=False).shape.windows == (Window(2, by_row=True), None)
    older = {**types, "layer_types": None, "max_window_layers": 1}
    assert saying(folder, {}, **older).shape.windows == (None, causal)
    with pytest.raises(BadInput, match="has sliding layers, and no sliding_window is set"):
        saying(folder, {}, **{**types, "use_sliding_window": False})


def test_what_is_borrowed_is_what_the_layout_was_trained_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills embeddings that a module has scaled (Gemma's) where a layout takes raw ones, and the other way round."""
    monkeypatch.setattr(Lent, "written_embeddings", lambda lent: 4.0 * lent.embedding())  # as Gemma's module writes
    others = {name: load_drafter(FIXTURES / "dflash" / name, TARGET) for name in ("transformers", "speculators")}
    found = {
        "z-lab": saying(folder, {}),
        "z-lab, with a factor": saying(folder, {"input_embedding_scale": 3.0}),
        **others,
    }
    factors = {"z-lab": 4.0, "z-lab, with a factor": 3.0, "transformers": 4.0, "speculators": 1.0}
    for name, drafter in found.items():
        assert torch.equal(drafter.w["embed_tokens.weight"], factors[name] * embedding(TARGET)), name


def test_factors_are_read_in_either_place(folder: Path) -> None:
    """Kills a factor on embeddings or logits that is left out, and one that is applied to what a module has scaled."""
    for inside, fields in (({"output_multiplier": 0.5}, {}), ({}, {"output_multiplier": 0.5})):
        w = saying(folder, inside, input_embedding_scale=3.0, **fields).w
        assert torch.equal(w["embed_tokens.weight"], 3.0 * embedding(TARGET))
        assert torch.equal(w["lm_head.weight"], 0.5 * head(TARGET))
    with pytest.raises(BadInput, match=r"output_multiplier is 0\.5, but .* says 0\.25"):
        saying(folder, {"output_multiplier": 0.5}, output_multiplier=0.25)


@pytest.mark.parametrize(
    ("inside", "fields"),
    [({"final_logit_softcapping": 30.0}, {}), ({}, {"final_logit_softcapping": 30.0}), ({"shift_label": True}, {})],
)
def test_what_is_not_read_is_refused(folder: Path, inside: dict[str, Any], fields: dict[str, Any]) -> None:
    """Kills a cap on logits, or slots that mean other positions, that a config asks for in vain."""
    with pytest.raises(BadInput, match="which changes what a drafter computes"):
        saying(folder, inside, **fields)
