"""Layers beyond those that the fixtures have: each layout that takes another number of layers reads all of them."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from properties.helpers.checkpoints.damaged import damaged, edit
from properties.helpers.coins import COINS
from properties.helpers.schemas import special
from refengine.decoder.loop import Session
from refengine.engine.policy import pipeline, temperature
from refengine.errors import BadInput
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.memo import content
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.row import Row
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES

pytestmark = pytest.mark.on_record

# Of the rows of a folder one that draws, if there is one: what it reports is numbers, and each of them shows.
BY_RULE = sorted(ROWS.values(), key=lambda row: row.rules[0] != "point_mass")
LAYERED = {row.folder: row for row in BY_RULE if row.folder and (FIXTURES / row.folder / "config.json").is_file()}
WANTED = re.compile(r"tensor (\S+) (?:is missing|has shape .*, the config asks for \[([\d, ]+)\])")


def one_more(config: dict[str, Any]) -> None:
    """Raise the number of layers, wherever a config says it."""
    inner = next((x for x in config.values() if isinstance(x, dict) and "num_hidden_layers" in x), config)
    inner["num_hidden_layers"] = 1 + inner.get("num_hidden_layers", 0)
    if inner.get("layer_types"):
        inner["layer_types"] = [inner["layer_types"][0], *inner["layer_types"]]


def grown(row: Row, folder: Path) -> tuple[Path, list[str]] | None:
    """A copy of a checkpoint with a layer more, of random numbers, and the tensors that the loader has asked for. None
    where it takes no other number of layers."""
    target, asked, source = target_that_remembers(row.target), dict[str, Tensor](), torch.Generator().manual_seed(1)
    damaged(FIXTURES / row.folder, folder, lambda tensors, config: one_more(config))
    for _ in range(64):
        try:
            row.read(folder, target, **row.options)
        except BadInput as error:
            found = WANTED.search(str(error))
            if found is None:
                return None
            name, size = found[1], [int(x) for x in (found[2] or "1").split(",")]
            asked[name] = torch.randn(size, generator=source) * size[-1] ** -0.5
            edit(folder, lambda tensors, config: tensors.update({n: x.to(kind(tensors)) for n, x in asked.items()}))
        else:
            return (folder, sorted(asked)) if asked else None
    return None


def kind(tensors: dict[str, Tensor]) -> torch.dtype:
    return next(x.dtype for x in tensors.values() if x.is_floating_point())


def drafted(row: Row, folder: Path) -> list[Any]:
    """What it proposes in three rounds in which nothing is kept."""
    target = target_that_remembers(row.target)
    session = Session(target, row.read(folder, target, **row.options), along((), 3), pipeline(temperature(1.0)), 10**6)
    session.begin((5, 4, 0, 4, 0, 6, 3, 2, 4), COINS)
    for _ in range(3):
        session.play(COINS)
    return [content((x.block.tokens, x.block.parents, x.block.q)) for x in session.rounds]


@pytest.mark.parametrize("name", LAYERED)
@torch.inference_mode()
def test_every_tensor_of_a_layer_more_matters(name: str, tmp_path: Path) -> None:
    """Kills a norm, a bias or a projection that is bound, and read in the layers of the fixtures alone."""
    row = LAYERED[name]
    found = grown(row, tmp_path / "more")
    assert (found is None) == (special(name, "layers") in ("fixed", "none")), f'"layers" of {name} in fixtures/schemas'
    if found is None:
        return
    folder, asked = found
    whole = drafted(row, folder)
    for number, tensor in enumerate(asked):
        damaged(folder, tmp_path / str(number), lambda t, c, tensor=tensor: t.update({tensor: -3 * t[tensor].flip(0)}))
        assert drafted(row, tmp_path / str(number)) != whole, f"{tensor} does not matter"
