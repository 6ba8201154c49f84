"""A field of a config that changes what a drafter computes is read or refused: in every layout, wherever it stands."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from properties.helpers.schemas import special
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.unread_fields import SWITCHES, refuse_unread
from refengine.errors import BadInput
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

FOLDERS = sorted({row.folder for row in ROWS.values() if row.folder not in ("", row.target)})
LAYOUTS = [folder for folder in FOLDERS if special(folder, "layers") not in ("none", "transformers'")]
TARGETS = {row.folder: row.target for row in ROWS.values()}


def loading(name: str, tmp_path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Load a tiny drafter whose config was changed. change(the whole config, the part with the sizes)"""
    folder = shutil.copytree(FIXTURES / name, tmp_path / "drafter")
    config = json.loads((folder / "config.json").read_text())
    change(config, next((x for x in config.values() if isinstance(x, dict) and "num_hidden_layers" in x), config))
    (folder / "config.json").write_text(json.dumps(config))
    load_drafter(folder, load_target(FIXTURES / TARGETS[name], torch.float32))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_factor_that_nobody_applies_is_refused(tmp_path: Path, name: str) -> None:
    """Kills a layout whose reader forgets to ask: a Granite drafter without its factor on residuals still drafts."""
    with pytest.raises(
        BadInput, match=r"residual_multiplier is 0\.22, which changes what a drafter computes"
    ) as raised:
        loading(name, tmp_path, lambda whole, sizes: sizes.update(residual_multiplier=0.22))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_asks_for_nothing_is_no_obstacle(tmp_path: Path, name: str) -> None:
    """Kills a refusal of fields that transformers writes into every file of a family."""
    neutral = {key: said[0] if said else None for key, said in SWITCHES.items()}
    more = {"logits_scaling": 1.0, "no_rope_layers": [1, 1], "use_sliding_window": False, "max_window_layers": 0}
    loading(name, tmp_path, lambda whole, sizes: [sizes.setdefault(k, x) for k, x in {**neutral, **more}.items()])


@pytest.mark.parametrize("name", ["dart/drafter", "eagle/eagle1", "eagle/eagle3", "p_eagle/amazon"])
@pytest.mark.parametrize(
    "fields",
    [
        {"layer_types": ["sliding_attention"]},
        {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0},
    ],
    ids=["types", "older"],
)
def test_layouts_without_sliding_layers_refuse_them(tmp_path: Path, name: str, fields: dict[str, Any]) -> None:
    """Kills a window that is passed over: engines obey it, the released code of these layouts does not know it."""
    with pytest.raises(BadInput, match="ask for sliding layers, and this layout has none"):
        loading(name, tmp_path, lambda whole, sizes: sizes.update(fields))


def test_older_configs_slide_from_a_layer_on(tmp_path: Path) -> None:
    """Kills full layers for a config that says sliding ones as Qwen's did before there were types."""

    def older(whole: dict[str, Any], sizes: dict[str, Any]) -> None:
        del sizes["layer_types"]
        sizes.update(use_sliding_window=True, sliding_window=4, max_window_layers=1)

    with pytest.raises(BadInput, match="sliding-window layers are not part of this layout"):
        loading("tiny/dspark", tmp_path, older)


def test_the_taps_of_other_readers_are_refused(tmp_path: Path) -> None:
    """Kills the default layers tapped by a drafter that was trained on others and says so elsewhere."""
    for number, fields in enumerate(
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}}, {"eagle_aux_hidden_state_layer_ids": [0]})
    ):
        with pytest.raises(BadInput, match=r"eagle_(config|aux_hidden_state_layer_ids) is .*, which changes what"):
            loading("eagle/eagle3", tmp_path / str(number), lambda whole, sizes, said=fields: sizes.update(said))


def test_quantised_weights_and_lists_are_seen() -> None:
    """Kills quantised weights read as plain ones, and a list of which only the first entry is looked at."""
    for fields, message in (
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config is given, and quantised weights"),
        ({"no_rope_layers": [1, 0, 1]}, r"no_rope_layers is \[1, 0, 1\], which changes"),
    ):
        with pytest.raises(BadInput, match=message):
            refuse_unread(Config("config.json", fields))
    refuse_unread(Config("config.json", {"no_rope_layers": [1, 0]}), "no_rope_layers")


@pytest.mark.parametrize("name", SWITCHES)
def test_a_field_asks_wherever_it_stands_in_a_list(name: str) -> None:
    """Kills a list that asks for nothing because one of its entries does not, and a value that stands for nothing."""
    nothing = (*SWITCHES[name], None)
    for value in (*nothing, [], list(nothing)):
        refuse_unread(Config("config.json", {name: value}))
    for asks in (7.5, "other", *(x for x in (True, False) if x not in nothing)):
        for value in (asks, [asks], *([x, asks] for x in nothing), *([asks, x] for x in nothing)):
            with pytest.raises(BadInput, match=f"^config.json: {name} is "):
                refuse_unread(Config("config.json", {name: value}))
            refuse_unread(Config("config.json", {name: value}), name)


def test_metas_params_are_known_or_refused(tmp_path: Path) -> None:
    """Kills Llama 3.1's scaled angles left out of a layout that was read as Llama 2's."""
    folder = shutil.copytree(FIXTURES / "heads" / "parallel_heads", tmp_path / "heads")
    params = json.loads((folder / "params.json").read_text())
    (folder / "params.json").write_text(json.dumps({**params, "use_scaled_rope": True}))
    with pytest.raises(BadInput, match="use_scaled_rope is True, and this layout has no such thing"):
        load_target(folder)
