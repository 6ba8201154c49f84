"""What an EAGLE checkpoint may not get wrong, what it may leave out, and that every tensor is used."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from properties.helpers.checkpoints.damaged import Edit, damaged
from properties.helpers.checkpoints.eagle_example import FIXTURES, TARGET
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts import eagle3
from refengine.decoder.checkpoints.layouts.eagle_midlayer import default_taps
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.drafters.eagle1 import Eagle1
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.loop import begin
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.networks.rope import Linear, Rope
from refengine.decoder.protocols import Target
from refengine.errors import BadInput

TINY, GOLDEN = FIXTURES / "eagle", FIXTURES / "golden"
CHECKPOINTS = {
    "eagle1_A": "target_llama6A",
    "eagle3_A": "target_llama8A",
    "eagle3_deepspec_gemma4_A": "target_gemma4_deepspec",
    "eagle3_deepspec_qwen3_A": "target_q3A",
    "sp_eagle3_A": "target_sp_llama8",
    "sp_eagle3_C": "target_sp_qwen8",
}


def recorded(name: str) -> tuple[Target, FeatureRecurrence]:
    target = load_target(GOLDEN / CHECKPOINTS[name], torch.float32)
    drafter = load_drafter(GOLDEN / name / "drafter", target)
    assert isinstance(drafter, FeatureRecurrence)
    return target, drafter


def outputs(network: type[Eagle1] | type[Eagle3], shape: Any, tensors: dict[str, Tensor], passed: Any) -> Tensor:
    """Logits of a draft of three tokens after the given pass."""
    drafter = FeatureRecurrence(network(shape, tensors), Chain(1))
    drafter.start((), passed)
    draft = Draft(drafter.network, drafter.cache, drafter.length, 22, drafter.feature)
    logits = [draft.first, draft.grow((3,), (0,))[0], draft.grow((9,), (1,))[0]]
    return torch.cat([row.clamp(min=-50.0) for row in logits])  # what cannot be drafted has -inf on both sides


@pytest.mark.parametrize("name", sorted(CHECKPOINTS))
def test_no_tensor_can_be_zeroed_or_swapped_unnoticed(name: str) -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    target, drafter = recorded(name)
    network: Any = drafter.network
    tensors = dict(network.w.tensors)
    if name.startswith("eagle3_deepspec"):
        tensors["lm_head.weight"] = tensors["lm_head.weight"].roll(1, 1)  # the recorded target ties it to the embedding
    passed = begin(target, (14, 30, 81, 61, 82, 17), drafter.taps)
    right = outputs(type(network), network.shape, tensors, passed)
    used = [key for key in tensors if key != "t2d"]  # t2d is held to d2t by the loader
    for key in used:
        zeroed = outputs(type(network), network.shape, tensors | {key: torch.zeros_like(tensors[key])}, passed)
        assert float((zeroed - right).abs().max()) > 1e-4, key
    for a, b in itertools.combinations(used, 2):
        if tensors[a].shape == tensors[b].shape and tensors[a].dtype == tensors[b].dtype:
            swapped = outputs(type(network), network.shape, tensors | {a: tensors[b], b: tensors[a]}, passed)
            assert float((swapped - right).abs().max()) > 1e-4, (a, b)


DAMAGE: dict[str, tuple[str, Edit, str]] = {
    "missing": ("eagle3", lambda t, c: t.pop("fc.weight"), "tensor fc.weight is missing"),
    "missing in eagle1": ("eagle1", lambda t, c: t.pop("fc.bias"), "tensor fc.bias is missing"),
    "extra": ("eagle1", lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "bias denied": ("eagle1", lambda t, c: c.update(bias=False), "tensor fc.bias is in the file"),
    "a norm of another generation": (
        "eagle1",
        lambda t, c: t.update({"layers.0.input_layernorm.weight": torch.ones(32)}),
        r"tensor layers\.0\.input_layernorm\.weight is in the file",
    ),
    "misshapen": (
        "eagle3",
        lambda t, c: t.update({"midlayer.self_attn.q_proj.weight": torch.ones(32, 32)}),
        r"q_proj.weight has shape \[32, 32\], the config asks for \[32, 64\]",
    ),
    "other precision": (
        "eagle3_deepspec",
        lambda t, c: t.update({"norm.weight": t["norm.weight"].half()}),
        "norm.weight has dtype float16, expected float32",
    ),
    "map of floats": ("eagle3", lambda t, c: t.update(d2t=t["d2t"].float()), "d2t has dtype float32, expected int64"),
    "ids for offsets": (
        "eagle3",
        lambda t, c: t.update(d2t=torch.tensor([0, 2, 3, 4, 5, 6])),
        "tensor d2t leads outside the vocabulary",
    ),
    "two to one": ("eagle3", lambda t, c: t["d2t"].__setitem__(1, -1), "leads two draft tokens to one token"),
    "other member": (
        "eagle3",
        lambda t, c: t.update(t2d=t["t2d"].roll(1)),
        "d2t and t2d disagree about which tokens can be drafted",
    ),
    "draft vocabulary": (
        "eagle3",
        lambda t, c: c.update(draft_vocab_size=9),
        "draft_vocab_size is 9, and vocab_size is 8",
    ),
    "other target": ("eagle1", lambda t, c: c.update(vocab_size=9), "vocab_size is 9, and the target has 8"),
    "other width": ("eagle3", lambda t, c: c.update(target_hidden_size=48), "is 48, and the target has 32"),
    "last layer tapped": (
        "eagle3_deepspec",
        lambda t, c: c.update(target_layer_ids=[0, 2]),
        r"taps hidden state 3, outside 0 \.\. 2",
    ),
    "more layers": ("eagle3", lambda t, c: c.update(num_hidden_layers=2), "num_hidden_layers is not 1"),
    "scaled rope": (
        "eagle3",
        lambda t, c: c.update(rope_scaling={"type": "yarn", "factor": 2.0}),
        "rope_type is 'yarn', and only unscaled",
    ),
    "uneven heads": ("eagle1", lambda t, c: c.update(num_key_value_heads=3), "4 heads do not divide over 3"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads, casts or guesses around what a checkpoint gets wrong."""
    name, change, message = DAMAGE[damage]
    folder = damaged(TINY / name, tmp_path / "drafter", change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, TARGET)
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


def test_an_ambiguous_residual_is_refused(tmp_path: Path) -> None:
    """Kills a guess at norm_before_residual, for which two readers of this layout have opposite defaults."""
    shutil.copytree(GOLDEN / "sp_eagle3_A" / "drafter", tmp_path / "drafter")
    file = tmp_path / "drafter" / "config.json"
    config = json.loads(file.read_text())
    del config["norm_before_residual"]
    file.write_text(json.dumps(config))
    with pytest.raises(BadInput, match="norm_before_residual is missing"):
        load_drafter(tmp_path / "drafter", load_target(GOLDEN / CHECKPOINTS["sp_eagle3_A"], torch.float32))


BIASES = {
    "attention_bias": [f"self_attn.{name}_proj" for name in "qkvo"],
    "mlp_bias": [f"mlp.{name}_proj" for name in ("gate", "up", "down")],
}


@pytest.mark.parametrize("switch", BIASES)
def test_the_biases_of_speculators_layers_are_read_and_used(tmp_path: Path, switch: str) -> None:
    """Kills a refusal of biases that speculators writes where its layer config asks for them, and one left unused."""
    target, plain = recorded("sp_eagle3_A")
    source = GOLDEN / "sp_eagle3_A" / "drafter"
    config, tensors = json.loads((source / "config.json").read_text()), load_file(source / "model.safetensors")
    config["transformer_layer_config"][switch] = True
    names = [f"layers.0.{name}" for name in BIASES[switch]]
    passed = begin(target, (14, 30, 81, 61, 82, 17), plain.taps)
    generator = torch.Generator().manual_seed(0)

    def rows(drafter: Any) -> Tensor:
        return outputs(Eagle3, drafter.network.shape, dict(drafter.network.w.tensors), passed)

    for changed in ("", *names):
        made = {f"{name}.bias": torch.zeros(len(tensors[f"{name}.weight"])) for name in names}
        if changed:
            made[f"{changed}.bias"] += torch.randn(made[f"{changed}.bias"].shape, generator=generator)
        folder = tmp_path / (changed or "none")
        folder.mkdir()
        save_file(tensors | made, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config))
        moved = float((rows(load_drafter(folder, target)) - rows(plain)).abs().max())
        assert moved > 1e-3 if changed else moved < 1e-4, changed  # another kernel adds the bias


def test_taps_of_a_six_layer_target_are_not_three() -> None:
    """Kills two taps taken for three: 6 // 2 and 6 - 3 are one layer."""
    with pytest.raises(BadInput, match="layers 2, L/2 and L - 3 of a target of 6 layers are not three"):
        load_drafter(GOLDEN / "eagle3_A" / "drafter", load_target(GOLDEN / "target_llama6A", torch.float32))


def test_default_taps_are_those_of_the_released_loop_over_layers() -> None:
    """Kills a middle that is rounded up, or counted from 1: what stands before layer 2, L // 2 and L - 3, as met."""
    for layers in range(3, 100):
        met = [i for i in range(layers) if i == layers - 3 or i == layers // 2 or i == 2]
        assert list(default_taps(layers)) == met


def test_stored_embeddings_win_over_the_targets(tmp_path: Path) -> None:
    """Kills a reader that always borrows: some files carry embeddings of their own."""
    for name in ("eagle1", "eagle3"):
        shutil.copytree(TINY / name, tmp_path / name)
        tensors = load_file(tmp_path / name / "model.safetensors")
        own = torch.randn(8, 32)
        save_file(tensors | {"embed_tokens.weight": own}, tmp_path / name / "model.safetensors")
        network: Any = load_drafter(tmp_path / name, TARGET).network
        assert torch.equal(network.w["embed_tokens.weight"], own.double())


@pytest.mark.parametrize("name", ["eagle1", "eagle3"])
@pytest.mark.parametrize(
    ("scaling", "rope"), [("linear", Rope(10000.0, Linear(4.0))), ("dynamic", Rope(10000.0, limit=6))]
)
def test_a_scaled_rope_is_read_as_the_released_code_reads_it(
    tmp_path: Path, name: str, scaling: str, rope: Rope
) -> None:
    """Kills a refusal of what the released code runs, and a base kept beside a scaling: it falls back to 10000."""
    folder = shutil.copytree(TINY / name, tmp_path / "drafter")
    config = json.loads((folder / "config.json").read_text())
    config.update(rope_theta=1e6, rope_scaling={"type": scaling, "factor": 4.0}, max_position_embeddings=6)
    (folder / "config.json").write_text(json.dumps(config))
    drafter: Any = load_drafter(folder, TARGET)
    assert drafter.network.shape.rope == drafter.network.heads.rope == rope
    drafter.start((), begin(TARGET, (4, 3, 4, 0, 1, 6), drafter.taps))  # the last row waits for its token
    if scaling == "dynamic":
        Draft(drafter.network, drafter.cache, drafter.length, 2, drafter.feature)
        with pytest.raises(BadInput, match="past position 5 of a rotary embedding of type 'dynamic'") as raised:
            drafter.start((), begin(TARGET, (4, 3, 4, 0, 1, 6, 2, 5), drafter.taps))
        assert "\n" not in str(raised.value)


FLAGS = [name for name in eagle3.SWITCHES if name != "eagle_aux_hidden_state_layer_ids"]


@pytest.mark.parametrize("switch", FLAGS)
def test_every_switch_of_speculators_reaches_the_network(switch: str) -> None:
    """Kills a switch that is read past, and one that is taken for another: each alone, on and off."""
    fields = json.loads((FIXTURES / "variants" / "eagle3_speculators" / "config.json").read_text())
    for value in (False, True):
        shape, _ = eagle3.read_shape(Config("config.json", fields | {switch: value}), TARGET)
        assert {name: getattr(shape, name) for name in FLAGS} == {name: fields[name] for name in FLAGS} | {
            switch: value
        }
