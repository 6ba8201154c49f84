"""Sliding layers of speculators' EAGLE-3 and P-EAGLE: windows by hand and recorded, caches, what a config may say."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.checkpoints.reading.sliding import sliding_layers
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.drafters.p_eagle import MaskSlots
from refengine.decoder.loop import Session, begin
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.networks.windows import Window
from refengine.decoder.protocols import Target
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.errors import BadInput
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.exact_law import off_scratch
from refengine.source_tree import FIXTURES

CASES = {name: FIXTURES / "golden" / name for name in ("sp_eagle3_sliding", "sp_peagle_sliding")}
TARGETS = {dtype: load_target(FIXTURES / "tiny" / "target", dtype) for dtype in (torch.float32, torch.float64)}
TARGET = TARGETS[torch.float64]


def loaded(folder: Path, target: Target = TARGET) -> FeatureRecurrence:
    drafter = load_drafter(folder, target)
    assert isinstance(drafter, FeatureRecurrence)
    return drafter


PARTS = {case: (loaded(folder / "drafter"), loaded(folder / "drafter")) for case, folder in CASES.items()}


def rows(drafter: FeatureRecurrence, anchor: int, tokens: list[int]) -> Tensor:
    """Logits [len(tokens) + 1, V] after the anchor: of a chain that takes these tokens, or of as many slots."""
    draft = Draft(drafter.network, drafter.cache, drafter.length, anchor, drafter.feature)
    if isinstance(drafter.plan, MaskSlots):
        return drafter.plan.rows(draft, len(tokens))
    return torch.stack([draft.first, *(draft.grow((token,), (place,))[0] for place, token in enumerate(tokens))])


def test_windows_by_hand() -> None:
    """Kills a window that is one row off, one that moves along with EAGLE's drafts or stays under P-EAGLE's slots, and
    one that hides rows of the round itself."""
    text, positions = 4, torch.tensor([4, 5, 6, 6])  # the anchor, its child, and two branches of that
    sees = torch.cat((torch.ones(4, text), torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]])), 1)
    assert Window(2, by_row=False).within(sees.bool(), positions, text).int().tolist() == [
        [0, 0, 1, 1, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 1, 0, 1],
    ]
    assert Window(1, by_row=True).within(sees.bool(), positions, text).int().tolist() == [
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 1, 1, 0, 1],
    ]
    causal = torch.ones(4, 4).tril().bool()
    for window in (Window(1, by_row=False), Window(1, by_row=True)):  # of text alone both laws are one
        assert torch.equal(window.within(causal, torch.arange(4), 4), causal & ~torch.ones(4, 4).tril(-2).bool())


@pytest.mark.parametrize("case", sorted(CASES))
def test_rows_of_the_recording(case: str) -> None:
    """Kills a layer that slides where another should, and any other law of the window: the official code's rows."""
    target, golden = TARGETS[torch.float32], load_file(CASES[case] / "golden.safetensors")
    drafter, ids = loaded(CASES[case] / "drafter", target), golden["ids"].tolist()
    network: Any = drafter.network
    assert max(golden["anchors"].tolist()) > network.shape.window.before + 1
    for anchor, wanted in zip(golden["anchors"].tolist(), golden["logits"], strict=True):
        drafter.start((), begin(target, tuple(ids[:anchor]), drafter.taps))
        ours = rows(drafter, ids[anchor], ids[anchor + 1 :][: len(wanted) - 1])
        # The recordings' own float32 error is about 3e-6.
        assert float((ours - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.std())), anchor


@pytest.mark.parametrize("case", sorted(CASES))
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=7),
    pattern=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=2, max_size=4),
)
def test_after_any_pattern_state_and_rows_are_those_of_a_recompute(
    case: str, prompt: list[int], pattern: list[tuple[int, int]]
) -> None:
    """Kills text rows that count their window from the round that they came in, and a round that does not end."""
    live, fresh = PARTS[case]
    session = Session(TARGET, live, leviathan, pipeline(temperature(0.8)), 10**6)
    session.begin(tuple(prompt), COINS)
    for kept, token in pattern:
        session.rule = along((token,) * kept, token)
        session.play(COINS)
        assert off_scratch(session) == ""
        prefix = session.prompt + session.out
        fresh.start((), begin(TARGET, prefix[:-1], fresh.taps))
        torch.testing.assert_close(rows(live, prefix[-1], [3, 1, 4]), rows(fresh, prefix[-1], [3, 1, 4]))


def changed(source: Path, folder: Path, **fields: Any) -> Path:
    """A copy of a drafter with other fields in its layer config; None leaves a field out."""
    shutil.copytree(source / "drafter", folder)
    config = json.loads((folder / "config.json").read_text())
    layer = config["transformer_layer_config"] | fields
    config["transformer_layer_config"] = {name: value for name, value in layer.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(("case", "fields"), [
    ("sp_eagle3_sliding", {"use_sliding_window": False}),  # Qwen3's config drops the width then
    ("sp_eagle3_sliding", {"use_sliding_window": None}),
    ("sp_peagle_sliding", {"sliding_window": None}),
])  # fmt: skip
def test_without_a_width_a_sliding_layer_sees_the_whole_text(tmp_path: Path, case: str, fields: dict[str, Any]) -> None:
    """Kills a width that the official code does not use, and a refusal of what it writes."""
    text = tuple(load_file(CASES[case] / "golden.safetensors")["ids"].tolist())
    both: list[Tensor] = []
    for name, said in (("none", fields), ("full", {"layer_types": ["full_attention"] * 2})):
        drafter = loaded(changed(CASES[case], tmp_path / name, **said))
        drafter.start((), begin(TARGET, text[:9], drafter.taps))
        both.append(rows(drafter, text[9], [3, 1]))
    assert torch.equal(*both)


def test_llamas_width_needs_no_switch(tmp_path: Path) -> None:
    """Kills Qwen3's switch asked of a Llama: its config takes `sliding_window` as it is."""
    network: Any = loaded(changed(CASES["sp_peagle_sliding"], tmp_path / "x", use_sliding_window=False)).network
    assert network.shape.window == Window(2, by_row=True)
    assert network.shape.sliding == (1,)


@pytest.mark.parametrize(("fields", "message"), [
    ({"layer_types": ["sliding_attention"]}, "layer_types has 1 entries for num_hidden_layers 2"),
    ({"layer_types": ["sliding_attention", "chunked_attention"]}, "layer_types has 'chunked_attention', expected"),
    ({"sliding_window": 0}, "sliding_window is 0, expected an integer of at least 1"),
    ({"sliding_window": "5"}, "sliding_window is '5', expected an integer of at least 1"),
    ({"use_sliding_window": 1}, "use_sliding_window is 1, expected true or false"),
])  # fmt: skip
def test_damage_is_named_in_one_line(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Kills a window that is guessed around what a config gets wrong."""
    with pytest.raises(BadInput, match=message) as raised:
        loaded(changed(CASES["sp_eagle3_sliding"], tmp_path / "x", **fields))
    assert "\n" not in str(raised.value)


def test_the_angles_of_the_sliding_layers_serve_all(tmp_path: Path) -> None:
    """Kills a refusal of what speculators flattens: angles by type of layer, of which it takes the sliding ones."""
    angles = {"sliding_attention": {"rope_theta": 5e3}, "full_attention": {"rope_theta": 1e6}}
    network: Any = loaded(changed(CASES["sp_eagle3_sliding"], tmp_path / "x", rope_parameters=angles)).network
    assert network.shape.rope.theta == 5e3


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_window_moves_the_rows(case: str) -> None:
    """Kills a recording that would hold for full layers too."""
    drafter = loaded(CASES[case] / "drafter")
    network: Any = drafter.network
    passed = begin(TARGET, (4, 3, 4, 0, 1, 6, 2, 5), drafter.taps)
    drafter.start((), passed)
    near = rows(drafter, 3, [1, 2])
    drafter.network = Eagle3(type(network.shape)(**{**vars(network.shape), "window": None}), network.w.tensors)
    drafter.start((), passed)
    assert float((rows(drafter, 3, [1, 2]) - near).abs().min(-1).values.min()) > 1e-6


@pytest.mark.parametrize(("named", "slide"), [(0, (0, 1, 2)), (2, (2,)), (3, ()), (None, ())])
def test_layers_that_slide_by_the_older_rule(named: int | None, slide: tuple[int, ...]) -> None:
    """Kills a 0 that is taken for no number, and a default of 28 layers that is taken for none."""
    told = {"num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": named}
    assert sliding_layers(Config("config.json", told)) == slide
    assert sliding_layers(Config("config.json", told | {"num_hidden_layers": 30}))[-1:] == (29,)
    assert sliding_layers(Config("config.json", told | {"use_sliding_window": False})) == ()
