"""SpecForge's EAGLE-3 against recordings of its code, and what its config says that SafeAILab's does not."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.eagle_trees import DynamicTree
from refengine.decoder.loop import begin
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.errors import BadInput
from refengine.source_tree import GOLDEN

CASE = GOLDEN / "specforge_eagle3_A"
TARGET = load_target(GOLDEN / "target_llama8A", torch.float32)
SAID: dict[str, Any] = json.loads((CASE / "golden.json").read_text())


def written(folder: Path, **fields: Any) -> Path:
    """A copy of the recorded drafter with other fields; None leaves a field out."""
    shutil.copytree(CASE / "drafter", folder)
    config = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps({name: x for name, x in config.items() if x is not None}))
    return folder


def loaded(folder: Path) -> FeatureRecurrence:
    drafter = load_drafter(folder, TARGET)
    assert isinstance(drafter, FeatureRecurrence)
    return drafter


@pytest.mark.parametrize("variant", ["released", *SAID["configs"]])
def test_rows_of_the_recording(tmp_path: Path, variant: str) -> None:
    """Kills heads of the wrong width, taps that are not the config's, a base that it does not turn with, a fed-back
    feature that is normed, a head that is not: each variant is the same weights under another config."""
    drafter = loaded(written(tmp_path / "drafter", **SAID["configs"].get(variant, {})))
    golden = load_file(CASE / "golden.safetensors")
    ids = golden["ids"].tolist()
    assert isinstance(drafter.plan, DynamicTree)
    for anchor, wanted in zip(golden["anchors"].tolist(), golden[f"{variant}.logits"], strict=True):
        drafter.start((), begin(TARGET, tuple(ids[:anchor]), drafter.taps))
        draft = Draft(drafter.network, drafter.cache, drafter.length, ids[anchor], drafter.feature)
        chain = ids[anchor + 1 :][: len(wanted) - 1]
        ours = torch.stack([draft.first, *(draft.grow((x,), (i,))[0] for i, x in enumerate(chain))])
        # The recordings' own float32 error is about 3e-6.
        assert float((ours[:, golden["targets"]] - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.std()))
        assert int((ours > float("-inf")).sum(-1).max()) == len(golden["targets"])


def test_what_a_config_leaves_out_is_what_specforge_takes(tmp_path: Path) -> None:
    """Kills heads of width H / A where a width is said, a base other than 10000 and taps other than every release's."""
    left_out = {"rope_theta": None, "rope_parameters": None, "eagle_config": None, "norm_output": None}
    network: Any = loaded(written(tmp_path / "drafter", **left_out)).network
    assert (network.shape.rope.theta, network.shape.taps, network.shape.head_norm) == (10000.0, (2, 4, 5), True)
    with pytest.raises(BadInput, match=r"q_proj.weight has shape \[16, 128\], the config asks for \[64, 128\]"):
        loaded(written(tmp_path / "even", head_dim=None))


def test_stored_embeddings_win_over_the_targets(tmp_path: Path) -> None:
    """Kills a reader of one of its two exports alone: for SGLang it leaves the embeddings out, otherwise not."""
    folder = written(tmp_path / "drafter")
    tensors = load_file(folder / "model.safetensors")
    own = torch.randn(TARGET.vocabulary, TARGET.width)
    save_file(tensors | {"embed_tokens.weight": own}, folder / "model.safetensors")
    network: Any = loaded(folder).network
    assert torch.equal(network.w["embed_tokens.weight"], own)


@pytest.mark.parametrize(("fields", "message"), [
    ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 3]}}, "it taps 2 layers, and this layout has three"),
    ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 3, 7]}}, r"taps hidden state 8, outside 0 \.\. 7"),
    ({"fc_norm": False}, r"tensor fc_norm\.0\.weight is in the file"),
    ({"num_hidden_layers": 2}, "num_hidden_layers is not 1"),
    ({"rope_scaling": {"rope_type": "mrope"}, "rope_parameters": None}, "rope_type is 'mrope'"),
])  # fmt: skip
def test_damage_is_named_in_one_line(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Kills a reader that guesses around a config which contradicts its tensors."""
    with pytest.raises(BadInput, match=message) as raised:
        loaded(written(tmp_path / "drafter", **fields))
    assert "\n" not in str(raised.value)
