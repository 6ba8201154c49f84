"""P-EAGLE against recordings of speculators, and on the tiny target: slots, caches, reported rows, damage."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from properties.helpers.coins import COINS
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.eagle3 import Eagle3
from refengine.decoder.drafters.p_eagle import MaskSlots
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.protocols import Target, Turn
from refengine.engine.block import Block
from refengine.engine.coins import Branching
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.errors import BadInput
from refengine.exact.chance import Chance, runs
from refengine.source_tree import FIXTURES

GOLDEN, TINY = FIXTURES / "golden" / "sp_peagle_A", FIXTURES / "eagle" / "p_eagle"
TARGET = load_target(FIXTURES / "tiny" / "target", torch.float64)
SAMPLED = pipeline(temperature(0.8))


@pytest.fixture(scope="module")
def recording() -> tuple[Target, FeatureRecurrence, dict[str, Tensor]]:
    target = load_target(FIXTURES / "golden" / "target_sp_peagle", torch.float32)
    drafter = load_drafter(GOLDEN / "drafter", target)
    assert isinstance(drafter, FeatureRecurrence)
    return target, drafter, load_file(GOLDEN / "golden.safetensors")


def rows(drafter: FeatureRecurrence, anchor: int) -> Tensor:
    """Logits of a whole block, without drawing any of it."""
    plan = drafter.plan
    assert isinstance(plan, MaskSlots)
    draft = Draft(drafter.network, drafter.cache, drafter.length, anchor, drafter.feature)
    return plan.rows(draft, plan.length - 1)


@pytest.mark.peer("p_eagle")
@pytest.mark.parametrize("length", [5, 9, 14])
def test_slots_of_the_recording(recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]], length: int) -> None:
    """Kills a mask's feature that skips fc, slots that cannot see each other, a slot at the wrong position."""
    target, drafter, golden = recording
    ids = tuple(golden["ids"][0].tolist())
    drafter.start((), begin(target, ids[: length - 1], drafter.taps))
    found, wanted = rows(drafter, ids[length - 1]), golden[f"draft.{length}.logits"]
    ours = found[:, found[0] > float("-inf")]
    assert float((ours - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.std()))
    assert found.argmax(-1).tolist() == golden[f"draft.{length}.tokens"].tolist()


@pytest.mark.peer("p_eagle")
def test_traces_of_the_recording(recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]]) -> None:
    """Kills a slot's row that stays in the cache where an accepted token's belongs, and a chain of another length."""
    target, drafter, golden = recording
    for trace in range(3):
        g = {k.removeprefix(f"trace.{trace}."): v for k, v in golden.items() if k.startswith(f"trace.{trace}.")}
        session = Session(target, drafter, leviathan, pipeline(greedy()), 10**6)
        session.begin(tuple(g["prompt"][0].tolist()), COINS)
        for length, drafts in zip(g["prefix_len"].tolist(), g["drafts"].tolist(), strict=True):
            assert session.prompt + session.out == tuple(g["ids"][0, :length].tolist())
            session.play(COINS)
            wanted = [x for x in drafts if x >= 0]  # the recording drafts less where less is left to emit
            assert list(nodes(session.rounds[-1].block)[0])[: len(wanted)] == wanted


def as_amazon(folder: Path, source: Path = GOLDEN / "drafter", **changed: Any) -> Path:
    """A drafter of speculators under the names of Amazon's releases: the networks are the same."""
    folder.mkdir()
    tensors, config = load_file(source / "model.safetensors"), json.loads((source / "config.json").read_text())
    inner = config["transformer_layer_config"]
    said = {name: inner[name] for name in (
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "head_dim", "hidden_act", "rms_norm_eps", "vocab_size", "max_position_embeddings",
    )}  # fmt: skip
    said |= {"draft_vocab_size": config["draft_vocab_size"], "ptd_token_id": config["mask_token_id"]}
    said |= {"rope_theta": inner["rope_parameters"]["rope_theta"], "architectures": ["LlamaForCausalLMEagle3"]}
    renamed = {name.replace("layers.0.", "midlayer."): x for name, x in tensors.items()}
    renamed["mask_hidden"] = renamed["mask_hidden"].flatten()
    save_file({name: x for name, x in renamed.items() if name != "t2d"}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(said | changed))
    return folder


@pytest.mark.peer("p_eagle_amazon")
def test_amazons_layout_has_the_rows_of_the_recording(
    recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]], tmp_path: Path
) -> None:
    """Kills taps, a fusion layer, plain layers or a mask's feature other than those of the same network elsewhere."""
    target, _, golden = recording
    drafter = load_drafter(as_amazon(tmp_path / "amazon"), target, gamma=4)
    assert isinstance(drafter, FeatureRecurrence)
    ids = tuple(golden["ids"][0].tolist())
    drafter.start((), begin(target, ids[:8], drafter.taps))
    found, wanted = rows(drafter, ids[8]), golden["draft.9.logits"]
    ours = found[:, found[0] > float("-inf")]
    assert float((ours - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.std()))


@pytest.mark.parametrize(("changed", "message"), [
    ({"ptd_token_id": 96}, "ptd_token_id 96 is outside the vocabulary of 96 tokens"),
    ({"num_hidden_layers": 3}, r"tensor layers\.2\.self_attn\.q_proj\.weight is missing"),
    ({"target_hidden_size": 40}, "the width of its features is 40, and the target has 48"),
])  # fmt: skip
def test_damage_to_amazons_layout_is_named(
    recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]],
    tmp_path: Path,
    changed: dict[str, Any],
    message: str,
) -> None:
    """Kills a reader that guesses around a config which contradicts its tensors."""
    with pytest.raises(BadInput, match=message):
        load_drafter(as_amazon(tmp_path / "amazon", **changed), recording[0])


def test_a_chain_of_one_has_no_slot() -> None:
    """Kills a slot of no token: a file may say that one token is drafted."""
    drafter = load_drafter(TINY, TARGET, length=1)
    drafter.start((4, 3, 4), begin(TARGET, (4, 3, 4), drafter.taps))
    draft = Draft(drafter.network, drafter.cache, drafter.length, 0, drafter.feature)
    block = drafter.propose(Turn((4, 3, 4), (4, 3, 4, 0), pipeline(greedy()), COINS))
    assert nodes(block)[0] == (int(draft.first.argmax()),)


def test_reported_rows_are_the_law_of_the_draws() -> None:
    """Kills a q that is not what its token was drawn from."""
    drafter, total = load_drafter(TINY, TARGET, length=2), 0.0
    drafter.start((4, 3, 4), begin(TARGET, (4, 3, 4), drafter.taps))

    def propose(chance: Chance) -> tuple[Block, float]:
        block = drafter.propose(Turn((4, 3, 4), (4, 3, 4, 0), SAMPLED, Branching(chance)))
        assert block.q is not None
        return block, float(block.q[0].gather(1, block.tokens[0][:, None]).prod())

    for (block, reported), probability, _ in runs(propose):
        assert abs(reported - float(probability)) < 1e-14, nodes(block)
        total += float(probability)
    assert abs(total - 1) < 1e-14


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed(
    recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]],
) -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    target, drafter, _ = recording
    network: Any = drafter.network
    tensors = dict(network.w.tensors)
    passed = begin(target, (14, 30, 81, 61, 82, 17), drafter.taps)

    def outputs(changed: dict[str, Tensor]) -> Tensor:
        net = Eagle3(network.shape, tensors | changed)
        other = FeatureRecurrence(net, MaskSlots(3, 95, net.w["mask_hidden"].view(1, -1)))
        other.start((), passed)
        return rows(other, 22).clamp(min=-50.0)  # what cannot be drafted has -inf on both sides

    right, used = outputs({}), [key for key in tensors if key != "t2d"]  # t2d is held to d2t by the loader
    for key in used:
        assert float((outputs({key: torch.zeros_like(tensors[key])}) - right).abs().max()) > 1e-4, key
    for a, b in itertools.combinations(used, 2):
        if tensors[a].shape == tensors[b].shape and tensors[a].dtype == tensors[b].dtype:
            assert float((outputs({a: tensors[b], b: tensors[a]}) - right).abs().max()) > 1e-4, (a, b)


@pytest.mark.parametrize(
    ("tensor", "fields", "message"),
    [
        ("mask_hidden", {}, "tensor mask_hidden is missing"),
        ("", {"mask_token_id": 8}, "mask_token_id 8 is outside the vocabulary of 8 tokens"),
        ("", {"mask_token_id": None}, "mask_token_id is missing"),
        ("", {"eagle_aux_hidden_state_layer_ids": [0, 1]}, r"tensor fc.weight has shape \[32, 96\], .* \[32, 64\]"),
        ("", {"speculators_config": {}}, "speculative_tokens is missing"),
    ],
)
def test_damage_is_named_in_one_line(tmp_path: Path, tensor: str, fields: dict[str, Any], message: str) -> None:
    """Kills a reader that drafts with a mask that the file does not have."""
    folder = tmp_path / "drafter"
    shutil.copytree(TINY, folder)
    tensors, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    tensors.pop(tensor, None)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config | fields))
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, TARGET)
    assert "\n" not in str(raised.value)
