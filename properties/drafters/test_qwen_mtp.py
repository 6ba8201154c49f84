"""Qwen's multi-token prediction on a tiny target with a recurrent layer: what its checkpoint may not get wrong, and an
oracle that accepts everything."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

from properties.helpers.checkpoints.damaged import Edit, damaged
from refengine.commands import verify_checkpoint
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.qwen_mtp import read_shape
from refengine.decoder.checkpoints.reading.config import Config
from refengine.decoder.drafters.eagle_trees import Chain
from refengine.decoder.drafters.qwen_mtp import QwenMTP
from refengine.decoder.loop import Session, begin
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.targets.recurrent import RecurrentTarget
from refengine.decoder.targets.transformers import TransformersTarget
from refengine.engine.coins import Philox
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.leviathan import leviathan
from refengine.errors import BadInput
from refengine.source_tree import FIXTURES

TINY = FIXTURES / "qwen_mtp"
TARGET = load_target(TINY / "target", torch.float64)
WORDS = tuple((3 * i * i + i) % 7 for i in range(24))


def network(folder: Path) -> QwenMTP:
    drafter = load_drafter(folder, TARGET)
    assert isinstance(drafter, FeatureRecurrence)
    assert isinstance(drafter.network, QwenMTP)
    return drafter.network


def outputs(net: QwenMTP, passed: Any) -> Tensor:
    """Logits of every row of a prompt, and of a draft of three tokens behind it."""
    drafter = FeatureRecurrence(net, Chain(1))
    drafter.start(WORDS, passed)
    draft = Draft(net, drafter.cache, drafter.length, 2, drafter.feature)
    for place, token in enumerate((3, 0)):
        draft.grow((token,), (place,))
    positions, causal = torch.arange(len(WORDS) - 1), torch.ones(len(WORDS) - 1, len(WORDS) - 1).tril().bool()
    rows, _ = net.rows(passed.tokens[1:], passed.taps[net.taps[0]][:-1], positions, net.empty(), causal)
    return net.logits(torch.cat((rows, draft.out)))


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed() -> None:
    """Kills a tensor that is loaded and never used, or used in another's place: every expert is chosen here."""
    net = network(TINY / "target")
    tensors, passed = dict(net.w.tensors), begin(TARGET, WORDS, net.taps)
    right = outputs(net, passed)
    for key, x in tensors.items():
        zeroed = outputs(QwenMTP(net.shape, tensors | {key: torch.zeros_like(x)}), passed)
        assert float((zeroed - right).abs().max()) > 1e-4, key
    for a, b in itertools.combinations(tensors, 2):
        if tensors[a].shape == tensors[b].shape:
            swapped = outputs(QwenMTP(net.shape, tensors | {a: tensors[b], b: tensors[a]}), passed)
            assert float((swapped - right).abs().max()) > 1e-4, (a, b)


def test_both_layouts_are_one_module() -> None:
    """Kills a name that is mapped to another's place, experts in another order, gate and up exchanged."""
    native, converted = network(TINY / "target"), network(TINY / "speculators")
    assert native.shape == converted.shape
    assert native.w.tensors.keys() == converted.w.tensors.keys()
    assert all(torch.equal(x, converted.w.tensors[key]) for key, x in native.w.tensors.items())


@pytest.mark.parametrize("layout", ["target", "speculators"])
def test_a_sound_checkpoint_is_consistent(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a module that `checkpoint verify` cannot load, or that drafts nothing worth judging."""
    monkeypatch.setattr(verify_checkpoint, "NEW_TOKENS", 9)  # recurrent targets run row by row
    found = verify_checkpoint.verify(
        str(TINY / layout), str(TINY / "target"), "float32", gamma=3 if layout == "target" else None
    )
    by_id = {finding.id: finding for finding in found}
    assert by_id.pop("checkpoint/bitwise").verdict in ("consistent", "not tested")
    assert {finding.verdict for finding in by_id.values()} == {"consistent"}
    acceptance = by_id["checkpoint/acceptance"].numbers
    assert 0.5 < acceptance["accepted"] / acceptance["judged"] < 0.95


# --- an oracle: where module and target are the same function, everything is accepted ---------------------------------


def oracle() -> tuple[TransformersTarget, FeatureRecurrence]:
    """A target of one full-attention layer, and a module with the same layer that is given the token alone.

    The module has no row for the first token of a prompt. So queries and keys are constant and rotate with the
    position: a token twelve places back weighs e^-65 of the nearest, and the first one is out of sight.
    """
    torch.manual_seed(2)
    config = Qwen3_5TextConfig(
        vocab_size=8, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, layer_types=["full_attention"], attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 64.0, "partial_rotary_factor": 0.5},
        initializer_range=0.4, attn_implementation="eager",
    )  # fmt: skip
    model: Any = Qwen3_5ForCausalLM(config).double().eval().requires_grad_(False)
    state = model.state_dict()
    for name, x in state.items():
        if x.dim() == 1:
            x += 0.2 * torch.randn_like(x)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            queries = x if "k_proj" in name else x.view(4, 16, 16)[:, :8]  # the gates stay as they are
            queries.zero_()
        if name.endswith(("q_proj.bias", "k_proj.bias")):
            every = x.view(-1, 8) if "k_proj" in name else x.view(4, 16)[:, :8]
            every.copy_(torch.tensor([0.0, 8.0, 0, 0, 0, 0, 0, 0]))  # the pair that turns by 1/8 at each position
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            x.fill_(4.0)
    eps, embedded = config.rms_norm_eps, state["model.embed_tokens.weight"]
    embedded /= embedded.pow(2).mean(-1, keepdim=True).sqrt()
    keys = {name.removeprefix("model."): x for name, x in state.items() if name.startswith("model.layers.0.")}
    tensors = keys | {"norm.weight": state["model.norm.weight"]}
    tensors |= {"pre_fc_norm_embedding.weight": torch.zeros(16), "pre_fc_norm_hidden.weight": torch.zeros(16)}
    tensors["fc.weight"] = torch.cat(
        (torch.eye(16).double() * (1 + eps) ** 0.5, torch.zeros(16, 16)), 1
    )  # undoes the norm
    shared = {"embed_tokens.weight": embedded, "lm_head.weight": state["lm_head.weight"]}
    return TransformersTarget(model), module_of(config, tensors | shared)


def module_of(config: Qwen3_5TextConfig, tensors: dict[str, Tensor]) -> FeatureRecurrence:
    shape = read_shape(Config("oracle", config.to_dict()), routed=False)
    return FeatureRecurrence(QwenMTP(shape, {name: x.double() for name, x in tensors.items()}), Chain(3))


def test_a_module_that_is_the_target_is_always_right() -> None:
    """Kills a feature, position, rotation, gate or bias that is not the target's own layer's: some draft would miss."""
    target, drafter = oracle()
    session = Session(target, drafter, leviathan, pipeline(temperature(1.0)), 24)
    for seed in range(3):
        coins = Philox(seed, torch.tensor([0]))
        session.begin(WORDS[:12], coins)
        while not session.done:
            session.play(coins)
        for played in session.rounds[:-1]:
            assert played.block.q is not None
            assert len(played.verdict.path) == 3
            # What is out of sight is far below rounding; 1e-12 is some thousand roundings, and a miss would be 1e-2.
            assert float((played.p[:3] - played.block.q[0]).abs().max()) < 1e-12
            assert float(played.p.max()) < 0.9


# --- damage -----------------------------------------------------------------------------------------------------------

FC, GATE = "mtp.fc.weight", "mtp.layers.0.mlp.experts.1.gate_proj.weight"
EXPERT = "model.layers.1.mlp.experts.3.down_proj.weight"
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
DAMAGE: dict[str, tuple[str, Edit, str]] = {
    "missing": ("target", lambda t, c: t.pop(FC), "tensor mtp.fc.weight is missing"),
    "missing expert": ("target", lambda t, c: t.pop(GATE), f"tensor {GATE} is missing"),
    "no router": ("target", lambda t, c: t.pop("mtp.layers.0.mlp.gate.weight"), "mlp.gate.weight is missing"),
    "extra": ("target", lambda t, c: t.update({"mtp.stray": torch.zeros(2)}), "tensor mtp.stray is in the file"),
    "a second layer": (
        "target",
        lambda t, c: t.update({"mtp.layers.1.input_layernorm.weight": torch.zeros(24)}),
        r"tensor mtp\.layers\.1\.input_layernorm\.weight is in the file",
    ),
    "a target's stray": ("target", lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "a target's expert missing": ("target", lambda t, c: t.pop(EXPERT), f"tensor {EXPERT} is missing"),
    "a target's expert misshapen": (
        "target",
        lambda t, c: t.update({EXPERT: torch.zeros(24, 13)}),
        rf"{EXPERT} has shape \[24, 13\]",
    ),
    "a target's expert of integers": (
        "target",
        lambda t, c: t.update({EXPERT: t[EXPERT].long()}),
        f"{EXPERT} has dtype I64",
    ),
    "an expert too many": (
        "target",
        lambda t, c: t.update({EXPERT.replace("3", "4"): t[EXPERT].clone()}),
        r"experts.4.down_proj.weight is in the file",
    ),
    "misshapen": (
        "target",
        lambda t, c: t.update({"mtp.layers.0.self_attn.q_proj.weight": torch.ones(16, 24)}),
        r"q_proj.weight has shape \[16, 24\], the config asks for \[32, 24\]",
    ),
    "wrongly typed": ("target", lambda t, c: t.update({FC: t[FC].half()}), "fc.weight has dtype float16, expected"),
    "another expert too": (
        "target",
        lambda t, c: t.update(
            {
                "mtp.layers.0.mlp.experts.gate_up_proj": torch.zeros(4, 24, 24),
                "mtp.layers.0.mlp.experts.down_proj": torch.zeros(4, 24, 12),
            }
        ),
        "a file holds both",
    ),
    "more experts": ("speculators", lambda t, c: c.update(num_experts=5), r"gate.weight has shape \[4, 24\]"),
    "experts of a word": ("speculators", lambda t, c: c.update(num_experts_per_tok=5), "and there are 4 experts"),
    "dense": ("speculators", lambda t, c: c.update(num_experts=0), "mlp.gate_proj.weight is missing"),
    "heads": ("speculators", lambda t, c: c.update(num_key_value_heads=3), "2 heads do not divide over 3"),
    "rotation": (
        "speculators",
        lambda t, c: c.update(rope_parameters=ROPE, partial_rotary_factor=0.4),
        "partial_rotary_factor is 0.4, which leaves 3 of 8 numbers",
    ),
    "scaled rope": ("speculators", lambda t, c: c.update(rope_parameters=ROPE | {"rope_type": "yarn"}), "is 'yarn'"),
    "biases": ("speculators", lambda t, c: c.update(attention_bias=True), "q_proj.bias is missing"),
    "two modules": ("speculators", lambda t, c: c.update(mtp_num_hidden_layers=2), "mtp_num_hidden_layers is 2"),
    "own embeddings": ("speculators", lambda t, c: c.update(mtp_use_dedicated_embeddings=True), "dedicated_embeddings"),
    "no gate": ("speculators", lambda t, c: c.update(attn_output_gate=False), "attn_output_gate is false"),
    "activation": ("speculators", lambda t, c: c.update(hidden_act="gelu"), "hidden_act is 'gelu'"),
    "family": ("speculators", lambda t, c: c.update(model_type="mimo"), "model_type is 'mimo'"),
    "other target": ("speculators", lambda t, c: c.update(num_hidden_layers=3), "num_hidden_layers is 3, .* has 2"),
    "other head": (
        "speculators",
        lambda t, c: t.update({"verifier_lm_head.weight": torch.zeros(8, 24)}),
        "tensor verifier_lm_head.weight is not the target's",
    ),
    "misshapen head": (
        "speculators",
        lambda t, c: t.update({"verifier_lm_head.weight": torch.full((7, 24), torch.nan)}),
        r"verifier_lm_head.weight has shape \[7, 24\]",
    ),
}  # fmt: skip


OF_THE_TARGET = {name for name in DAMAGE if name.startswith("a target's")} | {"an expert too many"}


def changed(folder: Path, layout: str, change: Edit) -> Path:
    """Another config means the part of it that holds the sizes."""
    return damaged(TINY / layout, folder, lambda t, c: change(t, c.get("transformer_layer_config", c)))


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads, casts or guesses around what a checkpoint gets wrong."""
    layout, change, message = DAMAGE[damage]
    folder = changed(tmp_path / "drafter", layout, change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, load_target(folder, torch.float64) if damage in OF_THE_TARGET else TARGET)
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


def test_the_length_is_the_config_s(tmp_path: Path) -> None:
    """Kills a length that is guessed: speculators' config says it, a native one leaves it to whoever drafts."""
    assert load_drafter(TINY / "speculators", TARGET).plan == Chain(3)
    assert load_drafter(TINY / "target", TARGET, gamma=7).plan == Chain(7)
    shutil.copytree(TINY / "speculators", tmp_path / "s")
    file = tmp_path / "s" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"speculators_config": {}}))
    with pytest.raises(BadInput, match="speculative_tokens is missing"):
        load_drafter(tmp_path / "s", TARGET)


def test_copies_of_the_target_are_held_to_it(tmp_path: Path) -> None:
    """Kills a placeholder full of NaN that is taken for a head, and a true copy that is refused."""
    head = load_file(TINY / "target" / "model.safetensors")["lm_head.weight"]
    for i, copy in enumerate((torch.full_like(head, torch.nan), head)):
        placed = {"verifier_lm_head.weight": copy}
        folder = changed(tmp_path / str(i), "speculators", lambda t, c, placed=placed: t.update(placed))
        assert torch.equal(network(folder).w["lm_head.weight"], head.double())


def test_rope_parameters_win_over_the_top_level(tmp_path: Path) -> None:
    """Kills the order in which transformers reads the rotated part: its own configs say both, and they may differ."""
    folder = changed(tmp_path / "d", "speculators", lambda t, c: c.update(partial_rotary_factor=1.0))
    assert network(folder).shape.rotary == 4
    whole = {"rope_parameters": ROPE, "partial_rotary_factor": 1.0}
    assert network(changed(tmp_path / "e", "speculators", lambda t, c: c.update(whole))).shape.rotary == 8


def test_the_target_is_the_recurrent_one() -> None:
    """Kills a fixture whose rejected drafts need no roll-back of a recurrent state."""
    assert isinstance(TARGET, RecurrentTarget)
